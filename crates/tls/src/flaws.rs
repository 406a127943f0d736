//! Server certificates that were common once and are refused now: whose name is in their subject alone, or signed with SHA-1.

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, OtherError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME;

/// How many connections met one.
#[derive(Debug, Default)]
pub struct Flaws {
    missing_san: AtomicU64,
    sha1: AtomicU64,
}

impl Flaws {
    pub fn missing_san(&self) -> u64 {
        self.missing_san.load(Ordering::Relaxed)
    }

    pub fn sha1(&self) -> u64 {
        self.sha1.load(Ordering::Relaxed)
    }

    /// Counts a flaw for which a server was refused.
    pub(crate) fn refused(&self, flaw: &Flaw) {
        let count = match flaw {
            Flaw::LegacyName => &self.missing_san,
            Flaw::Sha1 { .. } => &self.sha1,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the flaws of a server that is believed whatever it shows.
    pub(crate) fn believed(&self, leaf: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) {
        let shown: Vec<X509Certificate<'_>> = std::iter::once(leaf).chain(intermediates).filter_map(parsed).collect();
        if shown.first().is_some_and(|leaf| !has_names(leaf)) {
            self.missing_san.fetch_add(1, Ordering::Relaxed);
        }
        // Nobody relies on how an authority signed itself.
        if shown.iter().any(|cert| old_algorithm(cert).is_some() && cert.issuer() != cert.subject()) {
            self.sha1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Why a certificate is not believed, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("certificate relies on legacy Common Name field, use SANs instead")]
    LegacyName,
    #[error(
        "certificate signed by unknown authority (possibly because of \"x509: cannot verify signature: insecure algorithm {algorithm}\" \
         while trying to verify candidate authority certificate {})", kubelith_meta::text::quote(.authority)
    )]
    Sha1 { algorithm: &'static str, authority: String },
}

impl Flaw {
    /// Of a certificate that was refused for its name.
    pub(crate) fn of_name(leaf: &CertificateDer<'_>, name: &ServerName<'_>) -> Option<Flaw> {
        let leaf = parsed(leaf)?;
        let common_name = leaf.subject().iter_common_name().last()?.as_str().ok()?;
        (!has_names(&leaf) && matches(common_name, &name.to_str())).then_some(Flaw::LegacyName)
    }

    /// Of certificates that are signed in a way that is not taken: an authority that could have signed one of them is known.
    pub(crate) fn of_signatures(
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        roots: &[CertificateDer<'_>],
    ) -> Option<Flaw> {
        let shown: Vec<X509Certificate<'_>> = std::iter::once(leaf).chain(intermediates).filter_map(parsed).collect();
        let (signed, algorithm) = shown.iter().find_map(|cert| Some((cert, old_algorithm(cert)?)))?;
        let authorities = roots.iter().chain(intermediates).filter_map(parsed);
        let authority = authorities.into_iter().find(|authority| authority.subject() == signed.issuer())?;
        Some(Flaw::Sha1 { algorithm, authority: name_of(&authority) })
    }

    pub fn of(error: &CertificateError) -> Option<&Flaw> {
        match error {
            CertificateError::Other(OtherError(why)) => why.downcast_ref(),
            _ => None,
        }
    }
}

impl From<Flaw> for rustls::Error {
    fn from(flaw: Flaw) -> rustls::Error {
        CertificateError::Other(OtherError(Arc::new(flaw))).into()
    }
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    x509_parser::parse_x509_certificate(certificate).ok().map(|(_, parsed)| parsed)
}

fn has_names(certificate: &X509Certificate<'_>) -> bool {
    certificate.extensions().iter().any(|extension| extension.oid == OID_X509_EXT_SUBJECT_ALT_NAME)
}

/// As Go calls it.
fn old_algorithm(certificate: &X509Certificate<'_>) -> Option<&'static str> {
    match certificate.signature_algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.5" => Some("SHA1-RSA"),
        "1.2.840.10045.4.1" => Some("ECDSA-SHA1"),
        _ => None,
    }
}

fn name_of(certificate: &X509Certificate<'_>) -> String {
    let subject = certificate.subject();
    let text = subject.iter_common_name().last().or_else(|| subject.iter_organization().next());
    let text = text.and_then(|text| text.as_str().ok()).filter(|text| !text.is_empty());
    text.map_or_else(|| format!("serial:{}", certificate.tbs_certificate.serial), str::to_owned)
}

/// Label by label; the first may be any.
fn matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.trim_end_matches('.').to_ascii_lowercase());
    let (patterns, labels): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), host.split('.').collect());
    let same = |(i, (pattern, label)): (usize, (&&str, &&str))| (i == 0 && *pattern == "*") || pattern == label;
    !pattern.is_empty() && patterns.len() == labels.len() && patterns.iter().zip(&labels).enumerate().all(same)
}
