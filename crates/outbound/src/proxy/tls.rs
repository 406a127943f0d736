//! TLS towards other servers: whom to trust, who we are.

use super::certificates::ClientCertificate;
use kubelith_tls::{Flaws, Trust};
use rustls::ClientConfig;
use std::sync::Arc;

/// How to speak TLS to a server.
#[derive(Debug, Clone)]
pub struct TlsClient {
    pub trust: Trust,
    /// The name that must be in the server's certificate; that of the address if absent.
    pub server_name: Option<String>,
    pub certificate: Arc<ClientCertificate>,
    /// Counts old-fashioned certificates of servers.
    pub flaws: Option<Arc<Flaws>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsClientError(String);

impl TlsClient {
    pub(crate) fn config(&self) -> Result<ClientConfig, TlsClientError> {
        let builder = self.trust.counting_client(self.flaws.clone()).map_err(TlsClientError)?;
        Ok(builder.with_client_cert_resolver(self.certificate.clone()))
    }
}
