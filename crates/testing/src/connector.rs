//! Pipes to the server, as hyper's clients want them.

use crate::{Error, Result};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use kubelith::plane::Doorway;
use kubelith_http::connection::PeerCertificates;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// Opens pipes, whatever the URI says. Only its path counts, and requests say that by themselves.
#[derive(Clone)]
pub struct Connector {
    doorway: Doorway,
    certificates: Option<PeerCertificates>,
}

impl Connector {
    pub(crate) fn new(doorway: Doorway, certificates: Option<PeerCertificates>) -> Connector {
        Connector { doorway, certificates }
    }

    /// A new connection, which speaks HTTP/1.1.
    pub fn connect(&self) -> io::Result<Pipe> {
        let gone = || io::Error::new(io::ErrorKind::ConnectionRefused, "the server is gone");
        self.doorway.open(self.certificates.clone()).map(Pipe).ok_or_else(gone)
    }
}

impl tower_service::Service<http::Uri> for Connector {
    type Response = TokioIo<Pipe>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Pipe>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        ready(self.connect().map(TokioIo::new))
    }
}

/// One end of a connection.
pub struct Pipe(DuplexStream);

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// What a client with this certificate sends in a handshake.
pub(crate) fn certificates(pem: &str) -> Result<PeerCertificates> {
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let chain = chain.map_err(|e| Error(e.to_string()))?;
    PeerCertificates::new(chain).ok_or_else(|| Error("there is no certificate".into()))
}
