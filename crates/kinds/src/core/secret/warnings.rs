//! Pairs of a key and a certificate that nothing can use.

use kubelith_codec::base64;
use kubelith_meta::Value;

/// What a TLS server would say of them, as far as their form shows.
pub fn warnings(secret: &Value) -> Vec<String> {
    if secret.str_at(&["type"]) != "kubernetes.io/tls" {
        return Vec::new();
    }
    let data = |key: &str| base64::decode(secret.str_at(&["data", key])).unwrap_or_default();
    let has = |pem: &[u8], mark: &str| String::from_utf8_lossy(pem).contains(mark);
    if !has(&data("tls.crt"), "-----BEGIN CERTIFICATE-----") {
        return vec!["tls: failed to find any PEM data in certificate input".into()];
    }
    if !has(&data("tls.key"), "PRIVATE KEY-----") {
        return vec!["tls: failed to find any PEM data in key input".into()];
    }
    Vec::new()
}
