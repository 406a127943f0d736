//! Connections by a route: straight to the address, or through a proxy.

use super::konnectivity;
use futures::future::BoxFuture;
use kubelith_system::sockets::UnixStream;
use kubelith_tls::files::system_error;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;

/// What a proxy may say before the tunnel begins.
const MAX_ANSWER: usize = 64 << 10;

/// How a destination is reached.
#[derive(Debug, Clone, Default)]
pub enum Route {
    #[default]
    Direct,
    Through(Arc<Proxy>),
}

/// A server that opens connections for others, and who is told of them.
#[derive(Debug)]
pub struct Proxy {
    pub(super) server: Server,
    observer: OnceLock<Arc<dyn DialObserver>>,
}

#[derive(Debug)]
pub enum Server {
    /// Asked by packets of a gRPC stream.
    Konnectivity(PathBuf),
    /// Asked with CONNECT, as the next one.
    Unix(PathBuf),
    /// With TLS, and the name in its certificate if that is not the host's.
    Tcp { host: String, port: u16, tls: Option<(Arc<ClientConfig>, Option<String>)> },
}

/// Told of connections that are made through proxies.
pub trait DialObserver: Send + Sync + std::fmt::Debug {
    fn started(&self, way: Way);
    fn done(&self, way: Way, after: Duration);
    fn failed(&self, way: Way, stage: Stage);
    /// A packet goes through a tunnel of konnectivity, by its name there.
    fn packet(&self, segment: Segment, kind: &'static str);
    /// What comes through a tunnel broke off.
    fn stream_failed(&self, code: tonic::Code);
    /// A tunnel led nowhere.
    fn tunnel_failed(&self, reason: Reason);
    /// Tunnels came into a state, or left it.
    fn tunnels(&self, state: State, change: i64);
}

/// Between this server and a konnectivity server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    FromClient,
    ToClient,
}

/// Why a tunnel led nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// There was no answer for too long.
    Timeout,
    /// Whoever wanted it did not wait for it.
    Context,
    /// The other end could not be reached.
    Endpoint,
    DialClosed,
    TunnelClosed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Created,
    Dialing,
    Ok,
}

/// How a proxy is spoken to, in the words of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub protocol: &'static str,
    pub transport: &'static str,
}

/// What failed: the connection to the proxy, or the one that it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Connect,
    Proxy,
}

pub(super) type Failure = (Stage, String);

impl Route {
    pub(super) fn through(server: Server) -> Route {
        Route::Through(Arc::new(Proxy { server, observer: OnceLock::new() }))
    }

    /// Tells an observer of what is dialed from now on. The first one stays.
    pub fn observe(&self, observer: &Arc<dyn DialObserver>) {
        if let Route::Through(proxy) = self {
            let _ = proxy.observer.set(observer.clone());
        }
    }

    /// `None`: go there straight.
    pub async fn connect(&self, host: &str, port: u16) -> Option<Result<Connection, String>> {
        match self {
            Route::Direct => None,
            Route::Through(proxy) => Some(proxy.connect(host, port).await.map(Either::Right)),
        }
    }
}

impl Proxy {
    /// Boxed: otherwise every crate that connects compiles all of this again.
    pub(crate) fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn Duplex>, String>> {
        Box::pin(self.connect_to(host, port))
    }

    async fn connect_to(&self, host: &str, port: u16) -> Result<Box<dyn Duplex>, String> {
        let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let (way, began, observer) = (self.server.way(), Instant::now(), self.observer.get());
        observer.inspect(|o| o.started(way));
        let connected = self.server.connect(&target, observer).await;
        observer.inspect(|o| match &connected {
            Ok(_) => o.done(way, began.elapsed()),
            Err((stage, _)) => o.failed(way, *stage),
        });
        connected.map_err(|(_, why)| why)
    }
}

impl Server {
    fn way(&self) -> Way {
        let (protocol, transport) = match self {
            Server::Konnectivity(_) => return konnectivity::WAY,
            Server::Unix(_) => ("http_connect", "uds"),
            Server::Tcp { .. } => ("http_connect", "tcp"),
        };
        Way { protocol, transport }
    }

    async fn connect(
        &self,
        target: &str,
        observer: Option<&Arc<dyn DialObserver>>,
    ) -> Result<Box<dyn Duplex>, Failure> {
        if let Server::Konnectivity(socket) = self {
            return Ok(Box::new(konnectivity::connect(socket, target, observer.cloned()).await?));
        }
        let (mut stream, named) = self.open().await.map_err(|why| (Stage::Connect, why))?;
        tunnel(&mut stream, &named, target).await.map_err(|why| (Stage::Proxy, why))?;
        Ok(stream)
    }

    async fn open(&self) -> Result<(Box<dyn Duplex>, String), String> {
        match self {
            Server::Unix(path) | Server::Konnectivity(path) => {
                let named = path.display().to_string();
                let failed = |e: io::Error| format!("dial unix {named}: connect: {}", system_error(&e));
                let stream = UnixStream::connect(path).await.map_err(failed)?;
                Ok((Box::new(stream), named))
            }
            Server::Tcp { host, port, tls } => {
                let named = format!("{host}:{port}");
                let failed = |e: io::Error| format!("dial tcp {named}: connect: {}", system_error(&e));
                let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
                let _ = stream.set_nodelay(true);
                let Some((config, server_name)) = tls else { return Ok((Box::new(stream), named)) };
                let name = ServerName::try_from(server_name.clone().unwrap_or_else(|| host.clone()))
                    .map_err(|_| format!("tls: invalid server name {host:?}"))?;
                let tls = TlsConnector::from(config.clone()).connect(name, stream).await;
                Ok((Box::new(tls.map_err(failed)?), named))
            }
        }
    }
}

/// Asks for a tunnel; behind the head of the answer, the other end speaks.
async fn tunnel(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), proxy: &str, target: &str) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| {
        format!("reading HTTP response from CONNECT to {target} via proxy {proxy} failed: {why}")
    };
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|e| failed(&e))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_ANSWER {
            return Err(failed(&"the answer is too long"));
        }
        // Byte by byte: what follows belongs to the tunnel.
        head.push(stream.read_u8().await.map_err(|_| failed(&"unexpected EOF"))?);
    }
    let line = head.split(|b| *b == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split_once(' ')).map(|(_, status)| status);
    let status = status.ok_or_else(|| failed(&format!("malformed HTTP response {line:?}")))?;
    match status.split(' ').next().unwrap_or_default() {
        "200" => Ok(()),
        code => Err(format!("proxy error from {proxy} while dialing {target}, code {code}: {status}")),
    }
}

pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection before TLS: to the address itself, or a tunnel to it.
pub type Connection = Either<TcpStream, Box<dyn Duplex>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy that answers one request with `answer`, and what it was asked.
    async fn asked(answer: &str) -> (Result<String, String>, String) {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        let (answer, whole) = (answer.to_owned(), "GET me HTTP/1.1".len());
        let proxy = async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(theirs.read_u8().await.unwrap());
            }
            theirs.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        };
        let client = async {
            tunnel(&mut ours, "proxy:8", "10.0.0.1:443").await?;
            let mut rest = vec![0; whole.min(5)];
            ours.read_exact(&mut rest).await.map_err(|e| e.to_string())?;
            Ok(String::from_utf8(rest).unwrap())
        };
        tokio::join!(client, proxy)
    }

    #[tokio::test]
    async fn a_tunnel_begins_behind_the_answer() {
        let (rest, request) = asked("HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello").await;
        assert_eq!(rest.unwrap(), "hello");
        assert_eq!(request, "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let (refused, _) = asked("HTTP/1.1 403 Forbidden\r\n\r\n").await;
        let want = "proxy error from proxy:8 while dialing 10.0.0.1:443, code 403: 403 Forbidden";
        assert_eq!(refused.unwrap_err(), want);
        let (odd, _) = asked("what\r\n\r\n").await;
        assert!(odd.unwrap_err().contains("malformed HTTP response \"what\""));
    }
}
