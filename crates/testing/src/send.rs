//! Plain requests as the administrator, for tests without a client of their own.

use crate::{Error, Kubelith, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: u16,
    /// Of JSON; null otherwise.
    pub body: Value,
    pub text: String,
}

impl Kubelith {
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, "application/json", Bytes::new()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send("POST", path, "application/json", body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send("PUT", path, "application/json", body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Result<Answer> {
        self.send("DELETE", path, "application/json", Bytes::new()).await
    }

    /// Sends one request as the administrator and reads the whole answer.
    pub async fn send(&self, method: &str, path: &str, content_type: &str, body: impl Into<Bytes>) -> Result<Answer> {
        self.send_as(self.token(), method, path, content_type, body).await
    }

    /// The same as whoever has the token.
    pub async fn send_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "kubelith")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", content_type)
            .body(Full::new(body.into()))
            .map_err(|e| Error(e.to_string()))?;
        let failed = |e: hyper::Error| Error(format!("{method} {path}: {e}"));
        let pipe = self.connector().connect().map_err(|e| Error(e.to_string()))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(pipe)).await.map_err(failed)?;
        let exchange = async {
            let (parts, body) = sender.send_request(request).await.map_err(failed)?.into_parts();
            let body = body.collect().await.map_err(failed)?.to_bytes();
            Ok(Answer {
                code: parts.status.as_u16(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
                text: String::from_utf8_lossy(&body).into_owned(),
            })
        };
        // The connection must be driven until the answer is here, and is of no use after that.
        let mut connection = std::pin::pin!(connection);
        let mut exchange = std::pin::pin!(exchange);
        tokio::select! {
            answer = &mut exchange => return answer,
            ended = &mut connection => ended.map_err(failed)?,
        }
        exchange.await
    }
}
