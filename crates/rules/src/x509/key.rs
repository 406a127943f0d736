//! Public keys and what they have signed.

use super::asn1::{Fields, sequence};
use super::der::{Der, SEQUENCE};
use super::request::key_info;
use aws_lc_rs::signature::{
    self as crypto, EcdsaVerificationAlgorithm, ParsedPublicKey, RsaParameters, RsaPublicKeyComponents,
};

/// An algorithm by its identifier and parameters, the latter as they are encoded.
#[derive(Debug, Clone)]
pub struct Algorithm {
    pub oid: String,
    pub parameters: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {
    /// Both numbers without leading zeros.
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    Ecdsa {
        curve: Curve,
        point: Vec<u8>,
    },
    Ed25519(Vec<u8>),
    /// One that signs nothing here.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    P224,
    P256,
    P384,
    P521,
}

impl Curve {
    fn of(oid: &str) -> Option<Curve> {
        Some(match oid {
            "1.3.132.0.33" => Curve::P224,
            "1.2.840.10045.3.1.7" => Curve::P256,
            "1.3.132.0.34" => Curve::P384,
            "1.3.132.0.35" => Curve::P521,
            _ => return None,
        })
    }

    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Curve::P224 => "P-224",
            Curve::P256 => "P-256",
            Curve::P384 => "P-384",
            Curve::P521 => "P-521",
        }
    }

    fn coordinate_bytes(self) -> usize {
        match self {
            Curve::P224 => 28,
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }

    /// `None` for the curve that nobody uses any more: what it signed cannot be checked here.
    fn verifier(self, hash: Hash) -> Option<&'static EcdsaVerificationAlgorithm> {
        Some(match (self, hash) {
            (Curve::P256, Hash::Sha1) => &crypto::ECDSA_P256_SHA1_ASN1,
            (Curve::P256, Hash::Sha256) => &crypto::ECDSA_P256_SHA256_ASN1,
            (Curve::P256, Hash::Sha384) => &crypto::ECDSA_P256_SHA384_ASN1,
            (Curve::P256, Hash::Sha512) => &crypto::ECDSA_P256_SHA512_ASN1,
            (Curve::P384, Hash::Sha256) => &crypto::ECDSA_P384_SHA256_ASN1,
            (Curve::P384, Hash::Sha384) => &crypto::ECDSA_P384_SHA384_ASN1,
            (Curve::P384, Hash::Sha512) => &crypto::ECDSA_P384_SHA512_ASN1,
            (Curve::P521, Hash::Sha1) => &crypto::ECDSA_P521_SHA1_ASN1,
            (Curve::P521, Hash::Sha256) => &crypto::ECDSA_P521_SHA256_ASN1,
            (Curve::P521, Hash::Sha384) => &crypto::ECDSA_P521_SHA384_ASN1,
            (Curve::P521, Hash::Sha512) => &crypto::ECDSA_P521_SHA512_ASN1,
            (Curve::P224, _) | (Curve::P384, Hash::Sha1) => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// How something is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    Rsa(Hash),
    RsaPss(Hash),
    Ecdsa(Hash),
    Ed25519,
    /// Not to be trusted, by this name.
    Insecure(&'static str),
    Unknown,
}

impl SignatureAlgorithm {
    pub fn of(algorithm: &Algorithm) -> SignatureAlgorithm {
        use SignatureAlgorithm::{Ecdsa, Ed25519, Insecure, Rsa, Unknown};
        match algorithm.oid.as_str() {
            "1.2.840.113549.1.1.4" => Insecure("MD5-RSA"),
            "1.2.840.113549.1.1.5" | "1.3.14.3.2.29" => Rsa(Hash::Sha1),
            "1.2.840.113549.1.1.11" => Rsa(Hash::Sha256),
            "1.2.840.113549.1.1.12" => Rsa(Hash::Sha384),
            "1.2.840.113549.1.1.13" => Rsa(Hash::Sha512),
            "1.2.840.113549.1.1.10" => pss(&algorithm.parameters).map_or(Unknown, SignatureAlgorithm::RsaPss),
            "1.2.840.10045.4.1" => Ecdsa(Hash::Sha1),
            "1.2.840.10045.4.3.2" => Ecdsa(Hash::Sha256),
            "1.2.840.10045.4.3.3" => Ecdsa(Hash::Sha384),
            "1.2.840.10045.4.3.4" => Ecdsa(Hash::Sha512),
            "1.3.101.112" if algorithm.parameters.is_empty() => Ed25519,
            _ => Unknown,
        }
    }
}

/// The hash of RSASSA-PSS, if the mask uses the same and the salt is as long as it.
fn pss(parameters: &[u8]) -> Option<Hash> {
    use super::der::{INTEGER, constructed};
    const MASK: &str = "1.2.840.113549.1.1.8";
    const NULL: [u8; 2] = [5, 0];
    let named = |mut der: Der<'_>| -> Option<(String, Vec<u8>)> {
        let mut algorithm = der.take(SEQUENCE)?;
        Some((algorithm.oid()?, algorithm.0.to_vec()))
    };
    let is_plain = |parameters: &[u8]| parameters.is_empty() || parameters == NULL;
    let mut fields = Der(parameters).take(SEQUENCE)?;
    let (hash, hash_parameters) = named(fields.take(constructed(0))?)?;
    let (mask, mask_parameters) = named(fields.take(constructed(1))?)?;
    let salt = fields.take(constructed(2))?.take(INTEGER)?.0;
    let (mask_hash, mask_hash_parameters) = named(Der(&mask_parameters))?;
    let (found, length): (Hash, &[u8]) = match hash.as_str() {
        "2.16.840.1.101.3.4.2.1" => (Hash::Sha256, &[32]),
        "2.16.840.1.101.3.4.2.2" => (Hash::Sha384, &[48]),
        "2.16.840.1.101.3.4.2.3" => (Hash::Sha512, &[64]),
        _ => return None,
    };
    let is_good = is_plain(&hash_parameters)
        && mask == MASK
        && mask_hash == hash
        && is_plain(&mask_hash_parameters)
        && salt == length
        && fields.is_empty();
    is_good.then_some(found)
}

impl PublicKey {
    /// A key as it stands alone (PKIX).
    pub fn from_der(der: &[u8]) -> Result<PublicKey, String> {
        let mut outer = Fields::of(der);
        let (algorithm, bits) = key_info(outer.take(sequence("publicKeyInfo"))?.content)?;
        if !outer.is_empty() {
            return Err("x509: trailing data after ASN.1 of public-key".into());
        }
        match PublicKey::read(&algorithm, bits)? {
            PublicKey::Other if !is_known(&algorithm.oid) => Err("x509: unknown public key algorithm".into()),
            key => Ok(key),
        }
    }

    /// Keys of unknown algorithms are left unread.
    pub fn read(algorithm: &Algorithm, bits: Vec<u8>) -> Result<PublicKey, String> {
        const NULL: [u8; 2] = [5, 0];
        match algorithm.oid.as_str() {
            "1.2.840.113549.1.1.1" if algorithm.parameters != NULL => {
                Err("x509: RSA key missing NULL parameters".into())
            }
            "1.2.840.113549.1.1.1" => read_rsa(&bits),
            "1.2.840.10045.2.1" => {
                let oid = Der(&algorithm.parameters).oid().ok_or("x509: invalid ECDSA parameters")?;
                let curve = Curve::of(&oid).ok_or("x509: unsupported elliptic curve")?;
                read_point(curve, bits)
            }
            "1.3.101.112" if !algorithm.parameters.is_empty() => {
                Err("x509: Ed25519 key encoded with illegal parameters".into())
            }
            "1.3.101.112" if bits.len() != 32 => Err("x509: wrong Ed25519 public key size".into()),
            "1.3.101.112" => Ok(PublicKey::Ed25519(bits)),
            "1.3.101.110" if !algorithm.parameters.is_empty() => {
                Err("x509: X25519 key encoded with illegal parameters".into())
            }
            "1.3.101.110" if bits.len() != 32 => Err("crypto/ecdh: invalid public key".into()),
            "1.2.840.10040.4.1" if Der(&bits).integer().is_none() => Err("x509: invalid DSA public key".into()),
            _ => Ok(PublicKey::Other),
        }
    }

    /// The size of an RSA key in whole bytes, as bits.
    pub fn rsa_bits(&self) -> Option<usize> {
        match self {
            PublicKey::Rsa { modulus, .. } => Some(modulus.len() * 8),
            _ => None,
        }
    }

    /// Whether this key made the signature. SHA-1 is still good enough for requests.
    pub fn verify(&self, algorithm: SignatureAlgorithm, signed: &[u8], signature: &[u8]) -> Result<(), String> {
        use SignatureAlgorithm::{Ecdsa, Ed25519, Insecure, Rsa, RsaPss, Unknown};
        let expected = match algorithm {
            Insecure(name) => return Err(format!("x509: cannot verify signature: insecure algorithm {name}")),
            Unknown => return Err("x509: cannot verify signature: algorithm unimplemented".into()),
            Rsa(_) | RsaPss(_) => "RSA",
            Ecdsa(_) => "ECDSA",
            Ed25519 => "Ed25519",
        };
        let found = match self {
            PublicKey::Rsa { .. } => ("RSA", "*rsa.PublicKey"),
            PublicKey::Ecdsa { .. } => ("ECDSA", "*ecdsa.PublicKey"),
            PublicKey::Ed25519(_) => ("Ed25519", "ed25519.PublicKey"),
            PublicKey::Other => return Err("x509: cannot verify signature: algorithm unimplemented".into()),
        };
        if found.0 != expected {
            let key = found.1;
            return Err(format!(
                "x509: signature algorithm specifies an {expected} public key, but have public key of type {key}"
            ));
        }
        match (self, algorithm) {
            (PublicKey::Rsa { modulus, exponent }, Rsa(hash)) => {
                verify_rsa(modulus, exponent, pkcs1(hash), signed, signature)
            }
            (PublicKey::Rsa { modulus, exponent }, RsaPss(hash)) => {
                verify_rsa(modulus, exponent, pss_parameters(hash), signed, signature)
            }
            (PublicKey::Ecdsa { curve, point }, Ecdsa(hash)) => {
                let key = curve.verifier(hash).and_then(|v| ParsedPublicKey::new(v, point).ok());
                let is_good = key.is_some_and(|key| key.verify_sig(signed, signature).is_ok());
                is_good.then_some(()).ok_or_else(|| "x509: ECDSA verification failure".into())
            }
            (PublicKey::Ed25519(key), _) => {
                let key = crypto::UnparsedPublicKey::new(&crypto::ED25519, key);
                key.verify(signed, signature).map_err(|_| "x509: Ed25519 verification failure".into())
            }
            _ => Err("x509: cannot verify signature: algorithm unimplemented".into()),
        }
    }

    /// Whether this key signed the message in the way that a proof of possession is: with SHA-256, whatever the key.
    pub fn proves_possession(&self, message: &[u8], signature: &[u8]) -> bool {
        use SignatureAlgorithm::{Ecdsa, Ed25519, RsaPss};
        let algorithm = match self {
            PublicKey::Rsa { .. } => RsaPss(Hash::Sha256),
            PublicKey::Ecdsa { .. } => Ecdsa(Hash::Sha256),
            PublicKey::Ed25519(_) => Ed25519,
            PublicKey::Other => return false,
        };
        self.verify(algorithm, message, signature).is_ok()
    }
}

fn is_known(oid: &str) -> bool {
    matches!(oid, "1.2.840.113549.1.1.1" | "1.2.840.10045.2.1" | "1.3.101.112" | "1.3.101.110" | "1.2.840.10040.4.1")
}

fn read_rsa(bits: &[u8]) -> Result<PublicKey, String> {
    let mut der = Der(bits).take(SEQUENCE).ok_or("x509: invalid RSA public key")?;
    let modulus = der.integer().ok_or("x509: invalid RSA modulus")?;
    // It is read into a machine's integer.
    let exponent = der.integer().filter(|e| e.len() <= 8).ok_or("x509: invalid RSA public exponent")?;
    let positive = |bytes: &[u8], what: &str| -> Result<Vec<u8>, String> {
        let is_zero = bytes.iter().all(|b| *b == 0);
        if is_zero || bytes[0] & 0x80 != 0 {
            return Err(format!("x509: RSA {what} is not a positive number"));
        }
        Ok(bytes.strip_prefix(&[0]).unwrap_or(bytes).to_vec())
    };
    Ok(PublicKey::Rsa { modulus: positive(modulus, "modulus")?, exponent: positive(exponent, "public exponent")? })
}

fn read_point(curve: Curve, point: Vec<u8>) -> Result<PublicKey, String> {
    const UNCOMPRESSED: u8 = 4;
    let name = curve.name().replace('-', "");
    if point.first() != Some(&UNCOMPRESSED) {
        return Err("ecdsa: invalid uncompressed public key".into());
    }
    if point.len() != 1 + 2 * curve.coordinate_bytes() {
        return Err(format!("invalid {name} point encoding"));
    }
    let verifier = curve.verifier(Hash::Sha256);
    if verifier.is_some_and(|verifier| ParsedPublicKey::new(verifier, &point).is_err()) {
        return Err(format!("{name} point not on curve"));
    }
    Ok(PublicKey::Ecdsa { curve, point })
}

fn pkcs1(hash: Hash) -> &'static RsaParameters {
    match hash {
        Hash::Sha1 => &crypto::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha256 => &crypto::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
        Hash::Sha384 => &crypto::RSA_PKCS1_2048_8192_SHA384,
        Hash::Sha512 => &crypto::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
    }
}

fn pss_parameters(hash: Hash) -> &'static RsaParameters {
    match hash {
        Hash::Sha384 => &crypto::RSA_PSS_2048_8192_SHA384,
        Hash::Sha512 => &crypto::RSA_PSS_2048_8192_SHA512,
        Hash::Sha1 | Hash::Sha256 => &crypto::RSA_PSS_2048_8192_SHA256,
    }
}

fn verify_rsa(
    modulus: &[u8],
    exponent: &[u8],
    parameters: &RsaParameters,
    signed: &[u8],
    signature: &[u8],
) -> Result<(), String> {
    const LEAST_BITS: usize = 1024;
    let leading = modulus.first().map_or(8, |b| b.leading_zeros() as usize);
    let bits = (modulus.len() * 8).saturating_sub(leading);
    if bits < LEAST_BITS {
        return Err(format!(
            "crypto/rsa: {bits}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)"
        ));
    }
    let key = RsaPublicKeyComponents { n: modulus, e: exponent };
    key.verify(parameters, signed, signature).map_err(|_| "crypto/rsa: verification error".into())
}
