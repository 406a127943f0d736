//! Certificates of others that are of no use any more. Nothing is refused for it here: whoever connects will.

use kubelith_meta::time::{Clock, SystemClock, Time};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use x509_parser::prelude::{FromDer, X509Certificate};

/// When the first certificate in a file ended, if that is in the past. What cannot be read is told by whoever loads it.
pub fn ended(path: &Path) -> Option<String> {
    let der = CertificateDer::from_pem_file(path).ok()?;
    let (_, certificate) = X509Certificate::from_der(&der).ok()?;
    let end = Time::from_unix(certificate.validity().not_after.timestamp());
    (end < SystemClock.now()).then(|| end.rfc3339())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_ended_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.crt");
        assert_eq!(ended(&path), None);
        let write = |year: i32| {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut params = rcgen::CertificateParams::default();
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(year, 2, 3);
            std::fs::write(&path, params.self_signed(&key).unwrap().pem()).unwrap();
        };
        write(2021);
        assert_eq!(ended(&path).as_deref(), Some("2021-02-03T00:00:00Z"));
        write(4000);
        assert_eq!(ended(&path), None);
    }
}
