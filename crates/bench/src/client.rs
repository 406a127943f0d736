//! HTTP/2 over TLS to a server on loopback; its certificate is not checked.

use crate::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_conformance::http::{Address, tls_config};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Windows as large as those of common clients, so that flow control is not what is measured.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

#[derive(Clone)]
pub struct Endpoint {
    address: Address,
    authorization: String,
    tls: TlsConnector,
}

impl Endpoint {
    pub fn new(address: Address, token: &str) -> Endpoint {
        let mut config = tls_config();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Endpoint { address, authorization: format!("Bearer {token}"), tls: TlsConnector::from(Arc::new(config)) }
    }

    pub async fn connect(&self) -> Result<Connection> {
        let socket = TcpStream::connect(self.address.socket).await?;
        socket.set_nodelay(true)?;
        let stream = self.tls.connect("localhost".try_into()?, socket).await?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // An error shows in the requests that are lost with it.
            let _ = connection.await;
        });
        Ok(Connection { sender, endpoint: self.clone() })
    }
}

#[derive(Clone)]
pub struct Connection {
    sender: http2::SendRequest<Full<Bytes>>,
    endpoint: Endpoint,
}

/// One request of a load.
pub struct Call {
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub accept: &'static str,
    pub body: Bytes,
}

pub const JSON: &str = "application/json";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Call {
    pub fn get(path: String) -> Call {
        Call { method: "GET", path, content_type: JSON, accept: JSON, body: Bytes::new() }
    }

    pub fn post(path: String, body: String) -> Call {
        Call { method: "POST", path, content_type: JSON, accept: JSON, body: body.into() }
    }
}

impl Connection {
    pub async fn open(&mut self, call: Call) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("https://{}{}", self.endpoint.address.host, call.path))
            .header("authorization", &self.endpoint.authorization)
            .header("accept", call.accept)
            .header("user-agent", "kubelith-bench");
        if !call.body.is_empty() {
            request = request.header("content-type", call.content_type);
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(Full::new(call.body))?).await?)
    }

    /// Status and length of the answer, which is read to its end and thrown away.
    pub async fn send(&mut self, call: Call) -> Result<(u16, usize)> {
        let response = self.open(call).await?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok((status, length))
    }
}
