//! TLS towards other servers: whom to trust, who we are.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Where systems keep the authorities that everybody trusts; the first file there is counts.
const SYSTEM_ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Which servers are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    #[default]
    System,
    /// Those whose certificates these authorities (PEM) signed.
    Authorities(Vec<u8>),
    /// `insecure-skip-tls-verify`
    Anyone,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTls {
    pub trust: Trust,
    /// The name that must be in the server's certificate; that of the address if absent.
    pub server_name: Option<String>,
    /// Our certificate and key, PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl ClientTls {
    pub(super) fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        let builder = match &self.trust {
            Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider))),
            Trust::System => builder.with_root_certificates(system_roots()),
            Trust::Authorities(pem) => {
                let roots = roots(pem);
                if roots.is_empty() {
                    return Err("unable to load root certificates: no valid certificate authority data seen".into());
                }
                builder.with_root_certificates(roots)
            }
        };
        let Some((certificate, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|e| format!("client certificate: {e}"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| format!("client key: {e}"))?;
        builder.with_client_auth_cert(chain, key).map_err(|e| e.to_string())
    }
}

fn roots(pem: &[u8]) -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).filter_map(Result::ok));
    store
}

fn system_roots() -> RootCertStore {
    let pem = SYSTEM_ROOTS.iter().find_map(|file| std::fs::read(file).ok()).unwrap_or_default();
    roots(&pem)
}

/// Believes everybody, but still checks that the server has the key of its certificate.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
