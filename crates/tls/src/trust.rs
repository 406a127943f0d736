//! Whom to believe among the servers that are called.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme};
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those whose certificates these authorities (PEM) signed.
    Authorities(Vec<u8>),
    /// Any: what is sent may reach anybody.
    Anyone,
}

impl Trust {
    /// A client that believes these servers; who it is itself comes next.
    pub fn client(&self) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Verifier { known: self.known(&provider)?, provider: provider.clone() };
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        Ok(builder.map_err(|e| e.to_string())?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
    }

    /// `None`: anyone is believed.
    fn known(&self, provider: &Arc<CryptoProvider>) -> Result<Option<Known>, String> {
        let known = match self {
            Trust::Anyone => return Ok(None),
            Trust::System => Known::new(&system_roots(), provider)?,
            Trust::Authorities(pem) => match Known::new(pem, provider)? {
                Known { chains: None, .. } => {
                    return Err("unable to load root certificates: no valid certificate authority data seen".to_owned());
                }
                known => known,
            },
        };
        Ok(Some(known))
    }
}

fn system_roots() -> Vec<u8> {
    SYSTEM_ROOTS.iter().find_map(|file| std::fs::read(file).ok()).unwrap_or_default()
}

/// Certificates that known authorities signed, and those authorities themselves: a self-signed serving certificate that
/// is its own bundle is common, and the reference takes it.
#[derive(Debug)]
struct Known {
    roots: Vec<CertificateDer<'static>>,
    /// `None` without any usable authority.
    chains: Option<Arc<WebPkiServerVerifier>>,
}

impl Known {
    /// What can be read of a bundle; a broken entry does not spoil the others.
    fn new(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Known, String> {
        let roots: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let chains = match store.is_empty() {
            true => None,
            false => {
                let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
                Some(builder.build().map_err(|e| e.to_string())?)
            }
        };
        Ok(Known { roots, chains })
    }
}

/// A certificate that is one of the roots: its time and its names still count.
fn verify_root(leaf: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
    let (_, parsed) =
        x509_parser::parse_x509_certificate(leaf).map_err(|_| rustls::Error::from(CertificateError::BadEncoding))?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now > parsed.validity().not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    if now < parsed.validity().not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    Ok(())
}

/// Who believes anyone still checks that the server has the key of its certificate.
#[derive(Debug)]
struct Verifier {
    known: Option<Known>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.known {
            None => Ok(ServerCertVerified::assertion()),
            Some(known) if known.roots.contains(leaf) => {
                verify_root(leaf, name, now).map(|()| ServerCertVerified::assertion())
            }
            Some(Known { chains: Some(chains), .. }) => chains.verify_server_cert(leaf, intermediates, name, ocsp, now),
            Some(_) => Err(CertificateError::UnknownIssuer.into()),
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
