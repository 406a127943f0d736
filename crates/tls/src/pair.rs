//! A certificate and its key, read as the reference's TLS library reads them.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The pair, if its halves belong together. Certificates of any version are taken: a peer may have its own opinion of
/// them, and older ones serve in many places.
pub fn certified_key(cert: &[u8], key: &[u8], provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(cert).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let Some(leaf) = chain.first() else {
        return Err("tls: failed to find any PEM data in certificate input".to_owned());
    };
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|e| format!("x509: malformed certificate: {e}"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| e.to_string())?;
    let signer = provider.key_provider.load_private_key(key).map_err(|e| e.to_string())?;
    if signer.public_key().is_some_and(|public| public.as_ref() != leaf.tbs_certificate.subject_pki.raw) {
        return Err("tls: private key does not match public key".to_owned());
    }
    Ok(CertifiedKey::new(chain, signer))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of X.509's first version, as `openssl x509 -req` makes them.
    const CERT: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBKTCBzwIUDSWWq0aogCuvqkME5vDHi4w7xVswCgYIKoZIzj0EAwIwFjEUMBIG\n\
        A1UEAwwLZnJvbnQtcHJveHkwIBcNMjYxMTE1MTM0NzMwWhgPMjEyNjEwMjIxMzQ3\n\
        MzBaMBYxFDASBgNVBAMMC2Zyb250LXByb3h5MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n\
        AQcDQgAEz0EaosKSHnSrXxsoFlXah1EBHdiXLTh2uhIJ119ZryiIm8I+aAiRHRA/\n\
        5ZtDpVBoWrs2lddQifcSOgyVUDgFvTAKBggqhkjOPQQDAgNJADBGAiEAz6hkXio7\n\
        NjjKZ+HTHDMT19j545BIMW6RLTXjp+KJNsgCIQDvSlbZXlNhJ0Ro5G7Kkm0cFEeY\n\
        phL9+DenXlUYp/hGRg==\n\
        -----END CERTIFICATE-----";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgabp9My61Fxwy1fhm\n\
        rHk7tEtmITOx22ilVdxXHjRN+ZChRANCAATPQRqiwpIedKtfGygWVdqHUQEd2Jct\n\
        OHa6EgnXX1mvKIibwj5oCJEdED/lm0OlUGhauzaV11CJ9xI6DJVQOAW9\n\
        -----END PRIVATE KEY-----";

    #[test]
    fn halves_that_belong_together_are_taken() {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let read = |cert: &str, key: &str| certified_key(cert.as_bytes(), key.as_bytes(), &provider).map(|_| ());
        assert_eq!(read(CERT, KEY), Ok(()));
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        assert_eq!(read(CERT, &other), Err("tls: private key does not match public key".to_owned()));
        assert_eq!(read("", KEY), Err("tls: failed to find any PEM data in certificate input".to_owned()));
    }
}
