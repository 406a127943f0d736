//! Whom to believe among the servers that are called.

use crate::flaws::{Flaw, Flaws};
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
        self.counting_client(None)
    }

    /// The same; old-fashioned certificates that it meets are counted.
    pub fn counting_client(
        &self,
        flaws: Option<Arc<Flaws>>,
    ) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Verifier { known: self.known(&provider)?, provider: provider.clone(), flaws };
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
    use CertificateError as E;
    matches!(
        why,
        rustls::Error::InvalidCertificate(
            E::UnknownIssuer | E::BadSignature | E::UnsupportedSignatureAlgorithmContext { .. }
        )
    )
}

/// Who believes anyone still checks that the server has the key of its certificate.
#[derive(Debug)]
struct Verifier {
    known: Option<Known>,
    provider: Arc<CryptoProvider>,
    flaws: Option<Arc<Flaws>>,
}

impl Verifier {
    /// What Go would have told. Only of those that are refused it is looked for.
    fn flaw(
        &self,
        why: &rustls::Error,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
    ) -> Option<Flaw> {
        let rustls::Error::InvalidCertificate(why) = why else { return None };
        let flaw = match why {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Flaw::of_name(leaf, name)
            }
            // So old that the library does not read it: there were no lists of names then.
            CertificateError::Other(why) if format!("{why:?}").contains("UnsupportedCertVersion") => {
                Flaw::of_name(leaf, name)
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => None,
            _ => Flaw::of_signatures(leaf, intermediates, self.known.as_ref().map_or(&[], |known| &known.roots)),
        }?;
        self.flaws.iter().for_each(|flaws| flaws.refused(&flaw));
        Some(flaw)
    }
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
            None => {
                self.flaws.iter().for_each(|flaws| flaws.believed(leaf, intermediates));
                Ok(ServerCertVerified::assertion())
            }
            // Its time and its names still count.
            Some(known) if known.roots.contains(leaf) => {
                verify_own(leaf, name, now).map(|()| ServerCertVerified::assertion())
            }
            Some(Known { chains: Some(chains), .. }) => chains.verify_server_cert(leaf, intermediates, name, ocsp, now),
            Some(_) => Err(CertificateError::UnknownIssuer.into()),
        };
        verified.map_err(|why| {
            let why = match is_about_authority(&why) {
                true => verify_own(leaf, name, now).err().unwrap_or(why),
                false => why,
            };
            self.flaw(&why, leaf, intermediates, name).map_or(why, rustls::Error::from)
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
        let verifier = Verifier { known: trust.known(&provider).unwrap(), provider, flaws: None };
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

    /// Made with openssl, valid for a hundred years: rcgen makes nothing so old.
    const AUTHORITY: &[u8] = include_bytes!("old_certificates/authority.pem");
    const SHA1: &[u8] = include_bytes!("old_certificates/sha1.pem");
    const VERSION_1: &[u8] = include_bytes!("old_certificates/version-1.pem");

    #[test]
    fn old_certificates_are_refused_in_gos_words_and_counted() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "*.legacy");
        let legacy = params.self_signed(&key).unwrap();
        let bundle = [AUTHORITY, legacy.pem().as_bytes()].concat();
        let (provider, flaws) = (Arc::new(aws_lc_rs::default_provider()), Arc::new(Flaws::default()));
        let verifier = |trust: Trust| Verifier {
            known: trust.known(&provider).unwrap(),
            provider: provider.clone(),
            flaws: Some(flaws.clone()),
        };
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
        let pem = |pem: &[u8]| CertificateDer::from_pem_slice(pem).unwrap();
        let told = |trust: Trust, leaf: &CertificateDer<'_>, name: &'static str| {
            let name = ServerName::try_from(name).unwrap();
            match verifier(trust).verify_server_cert(leaf, &[], &name, &[], now) {
                Err(rustls::Error::InvalidCertificate(why)) => Flaw::of(&why).map(Flaw::to_string),
                other => other.map(|_| None).unwrap(),
            }
        };
        let known = || Trust::Authorities(bundle.clone());
        let relies = Some("certificate relies on legacy Common Name field, use SANs instead".to_owned());
        assert_eq!(told(known(), legacy.der(), "a.legacy"), relies);
        assert_eq!(told(known(), legacy.der(), "elsewhere"), None);
        assert_eq!(told(known(), &pem(VERSION_1), "server"), relies);
        assert_eq!((flaws.missing_san(), flaws.sha1()), (2, 0));
        let signed = "certificate signed by unknown authority (possibly because of \"x509: cannot verify signature: insecure \
                      algorithm SHA1-RSA\" while trying to verify candidate authority certificate \"old authority\")";
        assert_eq!(told(known(), &pem(SHA1), "server"), Some(signed.to_owned()));
        assert_eq!(told(known(), &pem(SHA1), "elsewhere"), None);
        assert_eq!((flaws.missing_san(), flaws.sha1()), (2, 1));
        // Who believes anyone only counts.
        assert_eq!(told(Trust::Anyone, legacy.der(), "a.legacy"), None);
        assert_eq!(told(Trust::Anyone, &pem(SHA1), "x"), None);
        assert_eq!((flaws.missing_san(), flaws.sha1()), (3, 2));
    }
}
