//! Which TLS versions, cipher suites and key exchanges are offered, read from the reference's flag values.
//!
//! rustls speaks TLS 1.2 and 1.3 with the modern suites only. The reference's older values stay valid, so
//! that an existing command line starts, and are named in a warning.

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
    #[error("none of the given {0} is available; leave the flag out or add one of: {1}")]
    NothingLeft(&'static str, String),
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

/// Numbers of Go's CurveID, which are IANA's. `None`: known to the reference, not offered here (P-521).
const CURVES: &[(i32, Option<&'static dyn SupportedKxGroup>)] = &[
    (4588, Some(kx_group::X25519MLKEM768)),
    (29, Some(kx_group::X25519)),
    (23, Some(kx_group::SECP256R1)),
    (24, Some(kx_group::SECP384R1)),
    (25, None),
    (4587, Some(kx_group::SECP256R1MLKEM768)),
    (4589, None),
];

impl TlsPolicy {
    /// Reads `--tls-min-version`, `--tls-cipher-suites` and `--tls-curve-preferences`; empty means default.
    pub fn parse(min_version: &str, suites: &[String], curves: &[i32]) -> Result<TlsPolicy, TlsPolicyError> {
        let mut warnings = Vec::new();
        let versions = parse_version(min_version, &mut warnings)?;
        let suites = parse_suites(suites, versions, &mut warnings)?;
        let groups = parse_curves(curves, &mut warnings)?;
        Ok(TlsPolicy { versions, suites, groups, warnings })
    }

    pub fn provider(&self) -> CryptoProvider {
        CryptoProvider {
            cipher_suites: self.suites.clone(),
            kx_groups: self.groups.clone(),
            ..aws_lc_rs::default_provider()
        }
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

fn parse_suites(
    names: &[String],
    versions: &[&SupportedProtocolVersion],
    warnings: &mut Vec<String>,
) -> Result<Vec<SupportedCipherSuite>, TlsPolicyError> {
    if names.is_empty() {
        return Ok(aws_lc_rs::DEFAULT_CIPHER_SUITES.to_vec());
    }
    let mut chosen: Vec<SupportedCipherSuite> =
        aws_lc_rs::DEFAULT_CIPHER_SUITES.iter().filter(|s| s.tls13().is_some()).copied().collect();
    let always = chosen.len();
    for name in names {
        if let Some((_, suite)) = SUITES.iter().find(|(n, _)| n == name) {
            if !chosen.contains(suite) {
                chosen.push(*suite);
            }
        } else if OLD_SUITES.contains(&name.as_str()) {
            warnings.push(format!("cipher suite {name} is insecure and not offered"));
        } else if !SUITES_13.contains(&name.as_str()) {
            return Err(TlsPolicyError::UnknownSuite(name.clone()));
        }
    }
    // Only old suites were asked for: TLS 1.2 clients would all be refused, which nobody means.
    if chosen.len() == always && versions.len() > 1 && names.iter().all(|n| OLD_SUITES.contains(&n.as_str())) {
        let offered = SUITES.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ");
        return Err(TlsPolicyError::NothingLeft("cipher suites", offered));
    }
    Ok(chosen)
}

fn parse_curves(ids: &[i32], warnings: &mut Vec<String>) -> Result<Vec<&'static dyn SupportedKxGroup>, TlsPolicyError> {
    if ids.is_empty() {
        return Ok(aws_lc_rs::DEFAULT_KX_GROUPS.to_vec());
    }
    for (i, &id) in ids.iter().enumerate() {
        if !(1..=65535).contains(&id) {
            return Err(TlsPolicyError::CurveOutOfRange(id));
        }
        if ids[..i].contains(&id) {
            return Err(TlsPolicyError::DuplicateCurve(id));
        }
        match CURVES.iter().find(|(known, _)| *known == id) {
            None => return Err(TlsPolicyError::UnknownCurve(id)),
            Some((_, None)) => warnings.push(format!("curve preference {id} is not offered")),
            Some(_) => {}
        }
    }
    // The order of the flag says nothing; CURVES is in order of preference.
    let chosen: Vec<_> = CURVES.iter().filter(|(id, _)| ids.contains(id)).filter_map(|(_, g)| *g).collect();
    if chosen.is_empty() {
        return Err(TlsPolicyError::NothingLeft("curves", "4588, 29, 23, 24, 4587".into()));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(version: &str, suites: &[&str], curves: &[i32]) -> Result<TlsPolicy, String> {
        let suites: Vec<String> = suites.iter().map(|s| s.to_string()).collect();
        TlsPolicy::parse(version, &suites, curves).map_err(|e| e.to_string())
    }

    #[test]
    fn errors_are_the_references() {
        let cases: &[(&str, &[&str], &[i32], &str)] = &[
            ("VersionTLS14", &[], &[], "unknown tls version \"VersionTLS14\""),
            ("", &["NOPE"], &[], "Cipher suite NOPE not supported or doesn't exist"),
            ("", &[], &[0], "curve preference 0 is out of range (must be 1-65535)"),
            ("", &[], &[23, 23], "duplicate curve preference 23"),
            ("", &[], &[7], "curve preference 7 is not supported by the current Go version"),
        ];
        for (version, suites, curves, want) in cases {
            assert_eq!(parse(version, suites, curves).unwrap_err(), *want);
        }
    }

    #[test]
    fn choices() {
        let p = parse("VersionTLS13", &[], &[]).unwrap();
        assert_eq!(p.versions.len(), 1);
        let p = parse("", &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"], &[25, 23]).unwrap();
        assert_eq!((p.suites.len(), p.groups.len(), p.warnings.len()), (4, 1, 2));
        assert!(parse("", &["TLS_RSA_WITH_RC4_128_SHA"], &[]).is_err());
        assert!(parse("", &[], &[25]).is_err());
    }
}
