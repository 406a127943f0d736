//! A client of a webhook, which stands in for the server.

use crate::Result;
use crate::client::JSON;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kubelith_conformance::http::tls_config;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub struct Webhook {
    sender: SendRequest<Full<Bytes>>,
}

impl Webhook {
    pub async fn connect(port: u16) -> Result<Webhook> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        socket.set_nodelay(true)?;
        let stream = TlsConnector::from(Arc::new(tls_config())).connect("localhost".try_into()?, socket).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // An error shows in the requests that are lost with it.
            let _ = connection.await;
        });
        Ok(Webhook { sender })
    }

    /// Sends a review of a new object, and reads the answer.
    pub async fn ask(&mut self, object: &[u8]) -> Result<()> {
        let mut review = br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"0","operation":"CREATE","object":"#.to_vec();
        review.extend_from_slice(object);
        review.extend_from_slice(b"}}");
        let request = Request::post("/allow").header("host", "localhost").header("content-type", JSON);
        let response = self.sender.send_request(request.body(Full::new(review.into()))?).await?;
        match response.status().as_u16() {
            200 => drop(response.into_body().collect().await?),
            status => return Err(format!("the webhook answered {status}").into()),
        }
        Ok(self.sender.ready().await?)
    }
}
