//! Whom to believe among the servers that are called.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;

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

/// What a certificate says of itself: its time and its names, in Go's order.
fn verify_own(leaf: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    let (_, parsed) =
        x509_parser::parse_x509_certificate(leaf).map_err(|_| rustls::Error::from(CertificateError::BadEncoding))?;
    let at = |time: i64| UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time).unwrap_or(0)));
    let (not_before, not_after) = (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp());
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if seconds > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after: at(not_after) }.into());
    }
    if seconds < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before: at(not_before) }.into());
    }
    verify_server_name(&ParsedCertificate::try_from(leaf)?, name)
}

/// Whether nothing is wrong but who signed the certificate. Go looks at everything else before, and tells that.
fn is_about_authority(why: &rustls::Error) -> bool {
    matches!(why, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature))
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
        let verified = match &self.known {
            None => Ok(ServerCertVerified::assertion()),
            // Its time and its names still count.
            Some(known) if known.roots.contains(leaf) => {
                verify_own(leaf, name, now).map(|()| ServerCertVerified::assertion())
            }
            Some(Known { chains: Some(chains), .. }) => chains.verify_server_cert(leaf, intermediates, name, ocsp, now),
            Some(_) => Err(CertificateError::UnknownIssuer.into()),
        };
        verified.map_err(|why| match is_about_authority(&why) {
            true => verify_own(leaf, name, now).err().unwrap_or(why),
            false => why,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate of an unknown authority: what else is wrong with it is told first.
    #[test]
    fn mistakes_are_told_in_gos_order() {
        let signed = |name: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
            (params.not_before, params.not_after) =
                (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2030, 1, 1));
            params.self_signed(&key).unwrap()
        };
        let trust = Trust::Authorities(signed("other").pem().into_bytes());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Verifier { known: trust.known(&provider).unwrap(), provider };
        let told = |name: &'static str, year: i32| {
            let now = rcgen::date_time_ymd(year, 6, 1).unix_timestamp();
            let now = UnixTime::since_unix_epoch(Duration::from_secs(now.try_into().unwrap()));
            let leaf = signed("server");
            let name = ServerName::try_from(name).unwrap();
            match verifier.verify_server_cert(leaf.der(), &[], &name, &[], now) {
                Err(rustls::Error::InvalidCertificate(why)) => why,
                other => panic!("{other:?}"),
            }
        };
        // Both have the same subject, and not the same key.
        assert_eq!(told("server", 2025), CertificateError::BadSignature);
        assert!(matches!(told("elsewhere", 2025), CertificateError::NotValidForNameContext { .. }));
        assert!(matches!(told("elsewhere", 2035), CertificateError::ExpiredContext { .. }));
        assert!(matches!(told("server", 2015), CertificateError::NotValidYetContext { .. }));
    }
}
