//! TLS towards other servers: whom to trust, who we are.

use super::certificates::ClientCertificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Where the system keeps the authorities that everybody trusts; the first file there is counts.
const SYSTEM_ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Which servers are believed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServerTrust {
    /// Those whose certificates these authorities (PEM) signed.
    Authorities(Vec<u8>),
    /// Those that the system trusts.
    System,
    /// Any: what is sent may reach anybody.
    Anyone,
}

/// How to speak TLS to a server.
#[derive(Debug, Clone)]
pub struct TlsClient {
    pub trust: ServerTrust,
    /// The name that must be in the server's certificate; that of the address if absent.
    pub server_name: Option<String>,
    pub certificate: Arc<ClientCertificate>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsClientError(String);

impl TlsClient {
    pub(super) fn config(&self) -> Result<ClientConfig, TlsClientError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &self.trust {
            ServerTrust::Anyone => Arc::new(Anyone(provider.clone())),
            ServerTrust::Authorities(pem) => {
                let roots = certificates(pem);
                if roots.is_empty() {
                    return Err(TlsClientError(
                        "unable to load root certificates: no valid certificate authority data seen".to_owned(),
                    ));
                }
                Arc::new(Known::new(roots, &provider)?)
            }
            ServerTrust::System => Arc::new(Known::new(system_roots(), &provider)?),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsClientError(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(self.certificate.clone());
        Ok(config)
    }
}

/// What can be read of a bundle; a broken entry does not spoil the others.
fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

fn system_roots() -> Vec<CertificateDer<'static>> {
    SYSTEM_ROOTS.iter().find_map(|file| std::fs::read(file).ok()).map(|pem| certificates(&pem)).unwrap_or_default()
}

/// Believes certificates that known authorities signed, and those authorities themselves: a self-signed serving
/// certificate that is its own bundle is common, and the reference takes it.
#[derive(Debug)]
struct Known {
    roots: Vec<CertificateDer<'static>>,
    /// `None` without any usable authority.
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Known {
    fn new(roots: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<Known, TlsClientError> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let chains = match store.is_empty() {
            true => None,
            false => {
                let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
                Some(builder.build().map_err(|e| TlsClientError(e.to_string()))?)
            }
        };
        Ok(Known { roots, chains, provider: provider.clone() })
    }

    /// A certificate that is one of the roots: its time and its names still count.
    fn verify_root(
        &self,
        leaf: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        if !self.roots.contains(leaf) {
            return Err(CertificateError::UnknownIssuer.into());
        }
        verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
        let (_, parsed) = x509_parser::parse_x509_certificate(leaf)
            .map_err(|_| rustls::Error::from(CertificateError::BadEncoding))?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now > parsed.validity().not_after.timestamp() {
            return Err(CertificateError::Expired.into());
        }
        if now < parsed.validity().not_before.timestamp() {
            return Err(CertificateError::NotValidYet.into());
        }
        Ok(())
    }
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.roots.contains(leaf) {
            return self.verify_root(leaf, name, now).map(|()| ServerCertVerified::assertion());
        }
        match &self.chains {
            Some(chains) => chains.verify_server_cert(leaf, intermediates, name, ocsp, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
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
