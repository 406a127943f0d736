//! The plugin protocol of KMS v2: three calls over a unix socket.

use crate::encryption::observe::EncryptionObserver;
use crate::error::StoreError;
use bytes::Bytes;
use kubelith_grpc::{self as grpc, Channel, Target};
use kubelith_system::require_sockets;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::{Code, Status};

#[derive(Clone, PartialEq, Message)]
pub struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct StatusResponse {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(string, tag = "2")]
    pub healthz: String,
    #[prost(string, tag = "3")]
    pub key_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct DecryptRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub ciphertext: Bytes,
    #[prost(string, tag = "2")]
    pub uid: String,
    #[prost(string, tag = "3")]
    pub key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub annotations: BTreeMap<String, Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DecryptResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub plaintext: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct EncryptRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub plaintext: Bytes,
    #[prost(string, tag = "2")]
    pub uid: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct EncryptResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub ciphertext: Bytes,
    #[prost(string, tag = "2")]
    pub key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub annotations: BTreeMap<String, Bytes>,
}

pub(super) struct KmsService {
    provider: String,
    channel: Channel,
    timeout: Duration,
    observer: Arc<dyn EncryptionObserver>,
}

impl KmsService {
    /// `endpoint` is `unix:///path`, or `unix:///@name` for a socket that is no file; the connection is made on first use.
    pub fn new(
        provider: &str,
        endpoint: &str,
        timeout: Duration,
        observer: Arc<dyn EncryptionObserver>,
    ) -> Result<KmsService, StoreError> {
        let path = endpoint.strip_prefix("unix://").or_else(|| endpoint.strip_prefix("unix:")).unwrap_or(endpoint);
        let path = match path.strip_prefix("/@") {
            Some(name) => format!("\0{name}"),
            None => path.to_owned(),
        };
        require_sockets(&format!("endpoint {endpoint:?}")).map_err(StoreError::Invalid)?;
        let channel = Channel::new(Target::Unix(path.into()), None).map_err(StoreError::Invalid)?;
        Ok(KmsService { provider: provider.to_owned(), channel, timeout, observer })
    }

    pub async fn status(&self) -> Result<StatusResponse, String> {
        self.call("/v2.KeyManagementService/Status", StatusRequest {}).await
    }

    pub async fn encrypt(&self, uid: String, plaintext: Bytes) -> Result<EncryptResponse, String> {
        self.call("/v2.KeyManagementService/Encrypt", EncryptRequest { plaintext, uid }).await
    }

    pub async fn decrypt(&self, request: DecryptRequest) -> Result<Bytes, String> {
        let response: DecryptResponse = self.call("/v2.KeyManagementService/Decrypt", request).await?;
        Ok(response.plaintext)
    }

    pub async fn call<Q, A>(&self, method: &'static str, request: Q) -> Result<A, String>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let started = Instant::now();
        let call = grpc::unary(&self.channel, method, &request);
        let answer = tokio::time::timeout(self.timeout, call).await;
        let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("context deadline exceeded")));
        let code = answer.as_ref().map_or_else(|status| code_name(status.code()), |_| "OK".to_owned());
        self.observer.plugin_called(&self.provider, method, &code, started.elapsed());
        answer.map_err(|status| describe(&status))
    }
}

/// As Go prints a status.
fn describe(status: &Status) -> String {
    format!("rpc error: code = {} desc = {}", code_name(status.code()), status.message())
}

/// As Go calls a code.
fn code_name(code: Code) -> String {
    match code {
        Code::Ok => "OK".to_owned(),
        Code::Cancelled => "Canceled".to_owned(),
        other => format!("{other:?}"),
    }
}
