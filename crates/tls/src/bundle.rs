//! Bundles of authorities as PEM: joined, without duplicates and without those that have expired.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubelith_meta::time::{Duration, Time};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Clocks differ: a certificate is kept for this long after its end.
const SLACK: Duration = Duration::from_secs(300);
const LINE: usize = 64;

/// All certificates of the bundles, in order; empty if none is left. Other PEM blocks are skipped.
pub fn join(bundles: &[&str], now: Time) -> Result<String, String> {
    let mut kept: Vec<CertificateDer<'static>> = Vec::new();
    for bundle in bundles {
        for der in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            let der = der.map_err(|e| format!("invalid PEM: {e}"))?;
            let (_, certificate) =
                X509Certificate::from_der(&der).map_err(|e| format!("malformed certificate: {e}"))?;
            let end = Time::from_unix(certificate.validity().not_after.timestamp());
            if now.since(end) < SLACK && !kept.contains(&der) {
                kept.push(der);
            }
        }
    }
    Ok(kept.iter().map(|der| pem(der)).collect())
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = String::with_capacity(text.len() + text.len() / LINE + 60);
    out.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str("-----END CERTIFICATE-----\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn authority(name: &str, end_year: i32) -> String {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(end_year, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn joined_without_duplicates_and_expired_ones() {
        let now = Time::parse("2026-01-01T00:00:00Z").unwrap();
        let (a, b, old) = (authority("a", 2030), authority("b", 2030), authority("old", 2020));
        let joined = join(&[&format!("{a}{old}"), &format!("{b}{a}")], now).unwrap();
        let unix = |pem: &str| pem.replace("\r\n", "\n");
        assert_eq!(joined, unix(&a) + &unix(&b));
        assert_eq!(join(&[&old], now), Ok(String::new()));
        assert!(join(&["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"], now).is_err());
    }
}
