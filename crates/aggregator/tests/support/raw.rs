//! A server that answers whatever a test wants, also what no server should.

use super::SERVICE;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kubelith_tls::{Pki, PkiOptions};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// Runs until dropped.
pub struct RawServer {
    pub port: u16,
    dir: tempfile::TempDir,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

impl RawServer {
    /// Each connection is given to `serve` after the handshake.
    pub async fn start<F>(serve: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static) -> RawServer
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki::open(dir.path(), PkiOptions::all([SERVICE], [])).unwrap();
        let chain = CertificateDer::pem_file_iter(pki.serving_cert()).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(pki.serving_key()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = Arc::new(serve);
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (acceptor, serve) = (acceptor.clone(), serve.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream).await;
                    }
                });
            }
        });
        RawServer { port, dir, task }
    }

    /// Answers HTTP requests.
    pub async fn http<F>(answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static) -> RawServer
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        RawServer::start(move |stream| {
            let answer = answer.clone();
            async move {
                let service = hyper::service::service_fn(move |request| {
                    let response = answer(request);
                    async move { Ok::<_, std::convert::Infallible>(response.await) }
                });
                let connection =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                let _ = connection.with_upgrades().await;
            }
        })
        .await
    }

    /// Reads the head of a request and writes these bytes, then closes.
    pub async fn bytes(path: &'static str, answer: &'static [u8]) -> RawServer {
        RawServer::start(move |mut stream| async move {
            let mut head = Vec::new();
            let mut buffer = [0; 4096];
            while !head.windows(4).any(|w| w == b"\r\n\r\n") {
                match stream.read(&mut buffer).await {
                    Ok(n) if n > 0 => head.extend_from_slice(&buffer[..n]),
                    _ => return,
                }
            }
            let is_it = String::from_utf8_lossy(&head).contains(path);
            let discovery: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = stream.write_all(if is_it { answer } else { discovery }).await;
            let _ = stream.shutdown().await;
        })
        .await
    }

    /// The authority of its certificate, PEM.
    pub fn ca(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("ca.crt")).unwrap()
    }
}
