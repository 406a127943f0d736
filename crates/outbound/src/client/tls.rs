//! TLS towards other servers: whom to trust, who we are.

use kubelith_tls::{Flaws, Trust};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub struct ClientTls {
    pub trust: Trust,
    /// The name that must be in the server's certificate; that of the address if absent.
    pub server_name: Option<String>,
    /// Our certificate and key, PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Counts old-fashioned certificates of servers.
    pub flaws: Option<Arc<Flaws>>,
}

impl ClientTls {
    pub(super) fn config(&self) -> Result<ClientConfig, String> {
        let builder = self.trust.counting_client(self.flaws.clone())?;
        let Some((certificate, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|e| format!("client certificate: {e}"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| format!("client key: {e}"))?;
        builder.with_client_auth_cert(chain, key).map_err(|e| e.to_string())
    }
}
