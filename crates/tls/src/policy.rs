//! Which TLS versions, cipher suites and key exchanges are offered, read from the reference's flag values.
//!
//! rustls speaks TLS 1.2 and 1.3 with the modern suites only. Suites that the reference has and rustls lacks are
//! refused by name: who lists one may count on it.

use super::groups::{SECP384R1MLKEM1024, SECP521R1};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsPolicyError {
    #[error("unknown tls version {}", kubelith_meta::text::quote(.0))]
    UnknownVersion(String),
    #[error("Cipher suite {0} not supported or doesn't exist")]
    UnknownSuite(String),
    #[error("curve preference {0} is out of range (must be 1-65535)")]
    CurveOutOfRange(i32),
    #[error("duplicate curve preference {0}")]
    DuplicateCurve(i32),
    #[error("curve preference {0} is not supported by the current Go version")]
    UnknownCurve(i32),
    #[error("cipher suites that this server does not offer: {}; those that it offers are {}", .0.join(", "), offered())]
    LackingSuites(Vec<String>),
    #[error(
        "error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at \
         least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)"
    )]
    UnfitForHttp2,
}

#[derive(Debug, Clone)]
pub struct TlsPolicy {
    pub versions: &'static [&'static SupportedProtocolVersion],
    pub suites: Vec<SupportedCipherSuite>,
    pub groups: Vec<&'static dyn SupportedKxGroup>,
    /// Accepted values that have no effect, each as a sentence.
    pub warnings: Vec<String>,
}

impl Default for TlsPolicy {
    fn default() -> TlsPolicy {
        TlsPolicy::parse("", &[], &[]).expect("the defaults are valid")
    }
}

/// Suites of TLS 1.2 by the reference's names. Those of TLS 1.3 are always on, as in Go.
const SUITES: &[(&str, SupportedCipherSuite)] = &[
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

const SUITES_13: &[&str] = &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// Known to the reference, not offered here: CBC modes and static RSA.
const OLD_SUITES: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Numbers of Go's CurveID, which are IANA's, all that Go 1.26 has. The client's order counts, not this one.
const CURVES: &[(i32, &'static dyn SupportedKxGroup)] = &[
    (4588, kx_group::X25519MLKEM768),
    (4587, kx_group::SECP256R1MLKEM768),
    (4589, SECP384R1MLKEM1024),
    (29, kx_group::X25519),
    (23, kx_group::SECP256R1),
    (24, kx_group::SECP384R1),
    (25, SECP521R1),
];

impl TlsPolicy {
    /// Reads `--tls-min-version`, `--tls-cipher-suites` and `--tls-curve-preferences`; empty means default.
    pub fn parse(min_version: &str, suites: &[String], curves: &[i32]) -> Result<TlsPolicy, TlsPolicyError> {
        let mut warnings = Vec::new();
        let versions = parse_version(min_version, &mut warnings)?;
        let suites = parse_suites(suites)?;
        let groups = parse_curves(curves)?;
        Ok(TlsPolicy { versions, suites, groups, warnings })
    }

    /// HTTP/2 wants one suite that every client of TLS 1.2 has (RFC 9113, 9.2.2); Go's server does not start without.
    pub fn check_http2(&self) -> Result<(), TlsPolicyError> {
        const REQUIRED: [SupportedCipherSuite; 2] = [
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ];
        let is_asked = self.versions.contains(&&version::TLS12);
        let has_one = REQUIRED.iter().any(|suite| self.suites.contains(suite));
        if has_one || !is_asked { Ok(()) } else { Err(TlsPolicyError::UnfitForHttp2) }
    }

    pub fn provider(&self) -> CryptoProvider {
        let mut cipher_suites = self.suites.clone();
        super::suites::sort(&mut cipher_suites);
        CryptoProvider { cipher_suites, kx_groups: self.groups.clone(), ..aws_lc_rs::default_provider() }
    }
}

fn parse_version(
    name: &str,
    warnings: &mut Vec<String>,
) -> Result<&'static [&'static SupportedProtocolVersion], TlsPolicyError> {
    static BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
    static ONLY_13: &[&SupportedProtocolVersion] = &[&version::TLS13];
    match name {
        "" | "VersionTLS12" => Ok(BOTH),
        "VersionTLS13" => Ok(ONLY_13),
        "VersionTLS10" | "VersionTLS11" => {
            warnings.push(format!("--tls-min-version={name} is not offered any more, the minimum is VersionTLS12"));
            Ok(BOTH)
        }
        _ => Err(TlsPolicyError::UnknownVersion(name.into())),
    }
}

fn parse_suites(names: &[String]) -> Result<Vec<SupportedCipherSuite>, TlsPolicyError> {
    if names.is_empty() {
        return Ok(aws_lc_rs::DEFAULT_CIPHER_SUITES.to_vec());
    }
    let mut chosen: Vec<SupportedCipherSuite> =
        aws_lc_rs::DEFAULT_CIPHER_SUITES.iter().filter(|s| s.tls13().is_some()).copied().collect();
    let mut lacking = Vec::new();
    for name in names {
        if let Some((_, suite)) = SUITES.iter().find(|(n, _)| n == name) {
            if !chosen.contains(suite) {
                chosen.push(*suite);
            }
        } else if OLD_SUITES.contains(&name.as_str()) {
            lacking.push(name.clone());
        } else if !SUITES_13.contains(&name.as_str()) {
            return Err(TlsPolicyError::UnknownSuite(name.clone()));
        }
    }
    if lacking.is_empty() { Ok(chosen) } else { Err(TlsPolicyError::LackingSuites(lacking)) }
}

/// The suites that may be listed; of two names of one suite the longer, which is IANA's.
fn offered() -> String {
    let names = SUITES.iter().map(|(name, _)| *name).filter(|name| !name.ends_with("POLY1305"));
    names.chain(SUITES_13.iter().copied()).collect::<Vec<_>>().join(", ")
}

fn parse_curves(ids: &[i32]) -> Result<Vec<&'static dyn SupportedKxGroup>, TlsPolicyError> {
    for (i, &id) in ids.iter().enumerate() {
        if !(1..=65535).contains(&id) {
            return Err(TlsPolicyError::CurveOutOfRange(id));
        }
        if ids[..i].contains(&id) {
            return Err(TlsPolicyError::DuplicateCurve(id));
        }
        if CURVES.iter().all(|(known, _)| *known != id) {
            return Err(TlsPolicyError::UnknownCurve(id));
        }
    }
    let is_chosen = |id: &i32| ids.is_empty() || ids.contains(id);
    Ok(CURVES.iter().filter(|(id, _)| is_chosen(id)).map(|(_, group)| *group).collect())
}

#[cfg(test)]
mod tests;
