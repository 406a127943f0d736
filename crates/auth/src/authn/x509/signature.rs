//! Checks that one certificate's key signed another. MD5 and SHA-1 signatures are refused.

use super::certificate::{Certificate, PublicKey};
use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

const RSA_ENCRYPTION: &str = "1.2.840.113549.1.1.1";
const EC_PUBLIC_KEY: &str = "1.2.840.10045.2.1";
const ED25519: &str = "1.3.101.112";
const P256: &str = "1.2.840.10045.3.1.7";
const P384: &str = "1.3.132.0.34";
const P521: &str = "1.3.132.0.35";

pub fn is_signed_by(child: &Certificate, key: &PublicKey) -> Result<(), String> {
    let algorithm = algorithm(child, key)?;
    UnparsedPublicKey::new(algorithm, &key.key)
        .verify(&child.signed, &child.signature)
        .map_err(|_| "x509: signature verification error".to_string())
}

fn algorithm(child: &Certificate, key: &PublicKey) -> Result<&'static dyn VerificationAlgorithm, String> {
    let oid = child.signature_algorithm.as_str();
    let found: Option<&'static dyn VerificationAlgorithm> = match (key.algorithm.as_str(), key.curve.as_str()) {
        (RSA_ENCRYPTION, _) => rsa(oid, &child.signature_parameters),
        (EC_PUBLIC_KEY, curve) => ecdsa(oid, curve),
        (ED25519, _) if oid == ED25519 => Some(&signature::ED25519),
        _ => None,
    };
    found.ok_or_else(|| "x509: cannot verify signature: algorithm unimplemented".to_string())
}

fn rsa(oid: &str, parameters: &[u8]) -> Option<&'static dyn VerificationAlgorithm> {
    match oid {
        "1.2.840.113549.1.1.11" => Some(&signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
        "1.2.840.113549.1.1.12" => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        "1.2.840.113549.1.1.13" => Some(&signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
        "1.2.840.113549.1.1.10" => pss(parameters),
        _ => None,
    }
}

/// RSASSA-PSS names its hash in the parameters: the hash's OID is found there as it is encoded.
fn pss(parameters: &[u8]) -> Option<&'static dyn VerificationAlgorithm> {
    const SHA2: [u8; 10] = [0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
    let mut hashes = parameters.windows(11).filter(|w| w[..10] == SHA2).map(|w| w[10]);
    // Once for the message, once for the mask; they must agree.
    let (first, second) = (hashes.next()?, hashes.next()?);
    match first {
        _ if first != second => None,
        1 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        2 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        3 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

fn ecdsa(oid: &str, curve: &str) -> Option<&'static dyn VerificationAlgorithm> {
    const SHA256: &str = "1.2.840.10045.4.3.2";
    const SHA384: &str = "1.2.840.10045.4.3.3";
    const SHA512: &str = "1.2.840.10045.4.3.4";
    match (curve, oid) {
        (P256, SHA256) => Some(&signature::ECDSA_P256_SHA256_ASN1),
        (P256, SHA384) => Some(&signature::ECDSA_P256_SHA384_ASN1),
        (P256, SHA512) => Some(&signature::ECDSA_P256_SHA512_ASN1),
        (P384, SHA256) => Some(&signature::ECDSA_P384_SHA256_ASN1),
        (P384, SHA384) => Some(&signature::ECDSA_P384_SHA384_ASN1),
        (P384, SHA512) => Some(&signature::ECDSA_P384_SHA512_ASN1),
        (P521, SHA256) => Some(&signature::ECDSA_P521_SHA256_ASN1),
        (P521, SHA384) => Some(&signature::ECDSA_P521_SHA384_ASN1),
        (P521, SHA512) => Some(&signature::ECDSA_P521_SHA512_ASN1),
        _ => None,
    }
}
