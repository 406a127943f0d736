//! HTTP/1.1 and HTTP/2 on connections that the test holds in its hand.

use super::TOKEN;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_conformance::http::tls_config;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// Of RFC 9113.
const FIRST_WINDOW: u32 = 65_535;

/// One connection.
pub enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Why a request got no answer.
#[derive(Debug)]
pub enum Failed {
    /// It was not sent: the connection was going away. Another connection may be tried.
    NotSent,
    /// It may have been sent.
    Lost(String),
}

impl Connection {
    pub async fn open(address: SocketAddr, protocol: Protocol) -> std::io::Result<Connection> {
        let io = TokioIo::new(tls(address, protocol).await?);
        match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await.map_err(std::io::Error::other)?;
                tokio::spawn(connection);
                Ok(Connection::Http1(sender))
            }
            Protocol::Http2 => {
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), io).await.map_err(std::io::Error::other)?;
                tokio::spawn(connection);
                Ok(Connection::Http2(sender))
            }
        }
    }

    /// HTTP/2 of a client that never opens the connection's window beyond what each begins with.
    pub async fn open_with_first_window(address: SocketAddr) -> std::io::Result<Connection> {
        let io = TokioIo::new(tls(address, Protocol::Http2).await?);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_connection_window_size(FIRST_WINDOW)
            .handshake(io)
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        Ok(Connection::Http2(sender))
    }

    /// The answer with its body still to come.
    pub async fn start(&mut self, method: &str, path: &str, body: &str) -> Result<hyper::Response<Incoming>, Failed> {
        let request = request(method, path, body);
        let (ready, sent) = match self {
            Connection::Http1(sender) => match sender.ready().await {
                Ok(()) => (true, Some(sender.send_request(request).await)),
                Err(_) => (false, None),
            },
            Connection::Http2(sender) => match sender.ready().await {
                Ok(()) => (true, Some(sender.send_request(request).await)),
                Err(_) => (false, None),
            },
        };
        match sent {
            Some(Ok(response)) => Ok(response),
            Some(Err(why)) if why.is_canceled() => Err(Failed::NotSent),
            // The server says that it did not look at the request: it came after the last one it took.
            Some(Err(why)) if format!("{why:?}").contains("REFUSED_STREAM") => Err(Failed::NotSent),
            Some(Err(why)) => Err(Failed::Lost(format!("{why:?}"))),
            None => {
                debug_assert!(!ready);
                Err(Failed::NotSent)
            }
        }
    }

    /// The whole answer.
    pub async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<Answer, Failed> {
        let response = self.start(method, path, body).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|e| Failed::Lost(format!("{e:?}")))?.to_bytes();
        let closes = parts.headers.get("connection").is_some_and(|v| v == "close");
        let retry = parts.status == 429 && parts.headers.contains_key("retry-after");
        Ok(Answer { status: parts.status.as_u16(), body, closes, retry })
    }
}

pub struct Answer {
    pub status: u16,
    pub body: Bytes,
    /// The server asks for another connection.
    pub closes: bool,
    /// The server asks to try again, elsewhere.
    pub retry: bool,
}

pub async fn tls(address: SocketAddr, protocol: Protocol) -> std::io::Result<TlsStream<TcpStream>> {
    let mut config = tls_config();
    config.alpn_protocols = match protocol {
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
        Protocol::Http2 => vec![b"h2".to_vec()],
    };
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

fn request(method: &str, path: &str, body: &str) -> hyper::Request<Full<Bytes>> {
    hyper::Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .header("host", "localhost")
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap()
}
