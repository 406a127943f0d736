//! Opens connections for the client: TCP, with TLS for https.

use super::tls::ClientTls;
use crate::egress::{Connection as Base, Route};
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

#[derive(Clone)]
pub struct Connector {
    tls: Arc<ClientConfig>,
    server_name: Option<String>,
    route: Route,
}

impl Connector {
    pub fn new(route: &Route, tls: &ClientTls) -> Result<Connector, String> {
        Ok(Connector { tls: Arc::new(tls.config()?), server_name: tls.server_name.clone(), route: route.clone() })
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<Stream>> {
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
        let host = uri.host().ok_or_else(|| invalid("no host in request URL"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tcp = match self.route.connect(&host, port).await {
            Some(tunnel) => tunnel.map_err(io::Error::other)?,
            None => {
                let tcp = TcpStream::connect((host.as_str(), port)).await?;
                tcp.set_nodelay(true)?;
                Base::Left(tcp)
            }
        };
        if !secure {
            return Ok(TokioIo::new(Stream(Box::pin(tcp))));
        }
        let name = self.server_name.unwrap_or(host);
        let name = ServerName::try_from(name).map_err(|e| invalid(&e.to_string()))?;
        let tls = TlsConnector::from(self.tls).connect(name, tcp).await?;
        Ok(TokioIo::new(Stream(Box::pin(tls))))
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Stream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A connection of either kind.
pub struct Stream(Pin<Box<dyn Duplex>>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}
