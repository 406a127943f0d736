//! Connections to other servers, and why there is none, in the words clients know.

use super::opening::{self, Broken, Opening};
use super::tls_words;
use crate::egress::{Connection as Base, Route};
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use kubelith_tls::files::system_error;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// To connect and shake hands. As in the reference, which has 30 seconds for the one and 10 for the other.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

const DNS_PORT: u16 = 53;

/// Makes connections.
#[derive(Clone)]
pub struct Dialer {
    pub route: Route,
    pub tls: Option<Tls>,
}

#[derive(Clone)]
pub struct Tls {
    pub config: Arc<ClientConfig>,
    /// The name in the certificate, if it is not that of the address.
    pub server_name: Option<ServerName<'static>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DialError(pub String);

impl Dialer {
    /// Boxed: otherwise every crate that passes requests on compiles TLS again.
    pub fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Stream, DialError>> {
        Box::pin(self.dial_server(host, port))
    }

    async fn dial_server(&self, host: &str, port: u16) -> Result<Stream, DialError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let base = match tokio::time::timeout(CONNECT_TIMEOUT, self.connect(bare, port)).await {
            Ok(connected) => connected?,
            Err(_) => return Err(DialError(format!("dial tcp {bare}:{port}: i/o timeout"))),
        };
        let Some(tls) = &self.tls else { return Ok(Stream::new(Inner::Plain(base))) };
        let name = match &tls.server_name {
            Some(name) => name.clone(),
            None => ServerName::try_from(bare.to_owned())
                .map_err(|_| DialError(format!("tls: invalid server name {bare:?}")))?,
        };
        let heard = Heard { base, first: Vec::new() };
        let handshake = TlsConnector::from(tls.config.clone()).connect(name.clone(), heard).into_fallible();
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => Ok(Stream::new(Inner::Tls(Box::new(stream)))),
            Ok(Err((_, heard))) if heard.first == PLAIN_HTTP => {
                Err(DialError("http: server gave HTTP response to HTTPS client".to_owned()))
            }
            Ok(Err((e, heard))) => Err(DialError(tls_words::of_handshake(&e, &name, heard.ends()))),
            Err(_) => Err(DialError("net/http: TLS handshake timeout".to_owned())),
        }
    }

    /// A connection for the authority of a URI.
    pub async fn dial_uri(&self, uri: &Uri) -> Result<Stream, DialError> {
        let default = if self.tls.is_some() { 443 } else { 80 };
        self.dial(uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(default)).await
    }

    async fn connect(&self, host: &str, port: u16) -> Result<Base, DialError> {
        if let Some(tunnel) = self.route.connect(host, port).await {
            return tunnel.map_err(DialError);
        }
        let tcp = connect(host, port).await?;
        // Small requests must not wait for each other's acknowledgement; without it they are only slower.
        let _ = tcp.set_nodelay(true);
        Ok(Base::Left(tcp))
    }
}

/// One address of the host after the other; if none answers, the first says why.
async fn connect(host: &str, port: u16) -> Result<TcpStream, DialError> {
    let no_such_host = |at: String| DialError(format!("dial tcp: lookup {host}{at}: no such host"));
    let addresses = match tokio::net::lookup_host((host, port)).await {
        Ok(addresses) => addresses,
        Err(_) => return Err(no_such_host(name_server().await)),
    };
    let mut first = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(why) => drop(first.get_or_insert_with(|| connect_error(address, &why))),
        }
    }
    Err(first.map_or_else(|| no_such_host(String::new()), DialError))
}

/// Whom Go would have asked for a name, as it tells.
async fn name_server() -> String {
    let text = tokio::fs::read_to_string("/etc/resolv.conf").await.unwrap_or_default();
    let server = text.lines().find_map(|line| line.strip_prefix("nameserver")).map(str::trim);
    match server.and_then(|server| server.parse().ok()) {
        Some(address) => format!(" on {}", SocketAddr::new(address, DNS_PORT)),
        None => String::new(),
    }
}

fn connect_error(address: SocketAddr, error: &io::Error) -> String {
    format!("dial tcp {address}: connect: {}", system_error(error))
}

/// How an answer begins that is not encrypted.
const PLAIN_HTTP: &[u8] = b"HTTP/";

/// A connection that remembers how what came from it began.
pub struct Heard {
    base: Base,
    first: Vec<u8>,
}

impl Heard {
    /// Our address and the other one, unless they are those of a tunnel.
    fn ends(&self) -> Option<[SocketAddr; 2]> {
        match &self.base {
            Base::Left(tcp) => Some([tcp.local_addr().ok()?, tcp.peer_addr().ok()?]),
            Base::Right(_) => None,
        }
    }
}

impl AsyncRead for Heard {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Heard { base, first } = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(base).poll_read(cx, buf);
        if first.len() < PLAIN_HTTP.len() {
            first.extend(buf.filled()[before..].iter().take(PLAIN_HTTP.len() - first.len()));
        }
        read
    }
}

impl AsyncWrite for Heard {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().base).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().base).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.base.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().base).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().base).poll_shutdown(cx)
    }
}

/// For the pool.
impl tower_service::Service<Uri> for Dialer {
    type Response = TokioIo<Stream>;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Self::Response, DialError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { dialer.dial_uri(&uri).await.map(TokioIo::new) })
    }
}

/// A connection to a server that speaks HTTP/1.1.
pub struct Stream {
    inner: Inner,
    /// While its first answer begins.
    opening: Option<Opening>,
}

/// Encrypted or not.
enum Inner {
    Plain(Base),
    Tls(Box<TlsStream<Heard>>),
}

impl Stream {
    fn new(inner: Inner) -> Stream {
        Stream { inner, opening: Some(Opening::default()) }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Inner {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Inner::Plain(s) => Pin::new(s).poll_read(cx, buf),
            Inner::Tls(s) => Pin::new(s).poll_read(cx, buf),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let before = buf.filled().len();
            let read = ready!(this.inner.poll_read(cx, buf));
            let Some(opening) = &mut this.opening else { return Poll::Ready(read) };
            match read {
                Ok(()) => {}
                // A peer that goes without a word of TLS ends its answer just as well.
                Err(why) if why.kind() == io::ErrorKind::UnexpectedEof && opening.has_begun() => {}
                Err(why) => return Poll::Ready(Err(why)),
            }
            match opening.hear(&buf.filled()[before..]) {
                opening::Heard::Sound => this.opening = None,
                opening::Heard::Unclear => {}
                opening::Heard::Odd => {
                    buf.set_filled(before);
                    continue;
                }
                opening::Heard::Broken(why) => return Poll::Ready(Err(io::Error::other(Broken(why)))),
            }
            return Poll::Ready(Ok(()));
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().inner {
            Inner::Plain(s) => Pin::new(s).poll_write(cx, buf),
            Inner::Tls(s) => Pin::new(s).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().inner {
            Inner::Plain(s) => Pin::new(s).poll_write_vectored(cx, bufs),
            Inner::Tls(s) => Pin::new(s).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.inner {
            Inner::Plain(s) => s.is_write_vectored(),
            Inner::Tls(s) => s.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Inner::Plain(s) => Pin::new(s).poll_flush(cx),
            Inner::Tls(s) => Pin::new(s).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Inner::Plain(s) => Pin::new(s).poll_shutdown(cx),
            Inner::Tls(s) => Pin::new(s).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_port_is_told_as_clients_know_it() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        drop(taken);
        let error = Dialer { route: Route::Direct, tls: None }.dial("127.0.0.1", port).await.err().unwrap();
        assert_eq!(error.0, format!("dial tcp 127.0.0.1:{port}: connect: connection refused"));
    }
}
