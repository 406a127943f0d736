//! Public keys: from PEM files and key sets, their ids, and what they verify.

use super::{decode, encode};
use aws_lc_rs::digest;
use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use kubelith_meta::Value;
use rustls_pki_types::pem::{self, SectionKind};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey as ParsedKey;
use x509_parser::x509::SubjectPublicKeyInfo;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    const NAMES: [(&'static str, Algorithm); 9] = [
        ("RS256", Algorithm::Rs256),
        ("RS384", Algorithm::Rs384),
        ("RS512", Algorithm::Rs512),
        ("PS256", Algorithm::Ps256),
        ("PS384", Algorithm::Ps384),
        ("PS512", Algorithm::Ps512),
        ("ES256", Algorithm::Es256),
        ("ES384", Algorithm::Es384),
        ("ES512", Algorithm::Es512),
    ];

    pub fn all() -> impl Iterator<Item = Algorithm> {
        Algorithm::NAMES.into_iter().map(|(_, algorithm)| algorithm)
    }

    pub fn named(name: &str) -> Option<Algorithm> {
        Algorithm::NAMES.iter().find(|(n, _)| *n == name).map(|(_, a)| *a)
    }

    pub fn name(self) -> &'static str {
        Algorithm::NAMES.iter().find(|(_, a)| *a == self).map_or("", |(n, _)| n)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// Bytes of a coordinate.
    fn size(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Curve::P256 => "P-256",
            Curve::P384 => "P-384",
            Curve::P521 => "P-521",
        }
    }

    fn oid(self) -> &'static [u8] {
        match self {
            Curve::P256 => &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
            Curve::P384 => &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22],
            Curve::P521 => &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23],
        }
    }

    fn of_coordinate(size: usize) -> Option<Curve> {
        [Curve::P256, Curve::P384, Curve::P521].into_iter().find(|c| c.size() == size)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {
    /// Modulus and exponent, big-endian without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// The point, uncompressed: 4, x, y.
    Ec { curve: Curve, point: Vec<u8> },
}

impl PublicKey {
    /// All keys of a PEM file: public keys, the public halves of private keys, keys of certificates.
    pub fn list_from_pem(mut pem: &[u8]) -> Result<Vec<PublicKey>, String> {
        let mut keys = Vec::new();
        loop {
            match pem::from_buf(&mut pem) {
                Ok(Some((kind, der))) => keys.extend(PublicKey::from_section(kind, &der)),
                Ok(None) => break,
                Err(e) => return Err(format!("invalid PEM: {e:?}")),
            }
        }
        if keys.is_empty() {
            return Err("data does not contain any valid RSA or ECDSA public keys".into());
        }
        Ok(keys)
    }

    fn from_section(kind: SectionKind, der: &[u8]) -> Option<PublicKey> {
        match kind {
            SectionKind::PublicKey => PublicKey::from_spki(der),
            SectionKind::Certificate => {
                let (_, cert) = x509_parser::parse_x509_certificate(der).ok()?;
                PublicKey::from_spki(cert.public_key().raw)
            }
            SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey | SectionKind::PrivateKey => {
                super::signer::Signer::from_der(kind, der).map(|s| s.public_key().clone())
            }
            _ => None,
        }
    }

    /// Reads a SubjectPublicKeyInfo.
    pub fn from_spki(der: &[u8]) -> Option<PublicKey> {
        let (rest, spki) = SubjectPublicKeyInfo::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        match spki.parsed().ok()? {
            ParsedKey::RSA(key) => PublicKey::rsa(key.modulus, key.exponent),
            ParsedKey::EC(point) => PublicKey::ec_point(point.data()),
            _ => None,
        }
    }

    pub fn rsa(n: &[u8], e: &[u8]) -> Option<PublicKey> {
        let trim = |b: &[u8]| b.iter().skip_while(|b| **b == 0).copied().collect::<Vec<u8>>();
        let (n, e) = (trim(n), trim(e));
        (!n.is_empty() && !e.is_empty() && n.len() <= 2048).then_some(PublicKey::Rsa { n, e })
    }

    fn ec_point(point: &[u8]) -> Option<PublicKey> {
        let (first, coordinates) = point.split_first()?;
        let curve = Curve::of_coordinate(coordinates.len() / 2)?;
        (*first == 4 && coordinates.len() == 2 * curve.size()).then(|| PublicKey::Ec { curve, point: point.to_vec() })
    }

    /// Reads a JSON Web Key; `None` for kinds that are not for signatures we know.
    pub fn from_jwk(jwk: &Value) -> Option<PublicKey> {
        let bytes = |key: &str| decode(jwk.str_at(&[key]));
        match jwk.str_at(&["kty"]) {
            "RSA" => PublicKey::rsa(&bytes("n")?, &bytes("e")?),
            "EC" => {
                let curve = [Curve::P256, Curve::P384, Curve::P521];
                let curve = curve.into_iter().find(|c| c.name() == jwk.str_at(&["crv"]))?;
                let (x, y) = (bytes("x")?, bytes("y")?);
                (x.len() == curve.size() && y.len() == curve.size())
                    .then(|| PublicKey::Ec { curve, point: [&[4], x.as_slice(), &y].concat() })
            }
            _ => None,
        }
    }

    /// As a JSON Web Key for signatures, members in the reference's order.
    pub fn to_jwk_json(&self) -> String {
        self.to_jwk_json_named(&self.id())
    }

    /// With an id that somebody else gave it.
    pub fn to_jwk_json_named(&self, id: &str) -> String {
        let (id, algorithm) = (crate::json::write(&id.into()), self.signing_algorithm().name());
        match self {
            PublicKey::Rsa { n, e } => format!(
                r#"{{"use":"sig","kty":"RSA","kid":{id},"alg":"{algorithm}","n":"{}","e":"{}"}}"#,
                encode(n),
                encode(e)
            ),
            PublicKey::Ec { curve, point } => {
                let (x, y) = point[1..].split_at(curve.size());
                let (crv, x, y) = (curve.name(), encode(x), encode(y));
                format!(
                    r#"{{"use":"sig","kty":"EC","kid":{id},"crv":"{crv}","alg":"{algorithm}","x":"{x}","y":"{y}"}}"#
                )
            }
        }
    }

    /// The algorithm that the server signs with when it has this key.
    pub fn signing_algorithm(&self) -> Algorithm {
        match self {
            PublicKey::Rsa { .. } => Algorithm::Rs256,
            PublicKey::Ec { curve: Curve::P256, .. } => Algorithm::Es256,
            PublicKey::Ec { curve: Curve::P384, .. } => Algorithm::Es384,
            PublicKey::Ec { curve: Curve::P521, .. } => Algorithm::Es512,
        }
    }

    /// The key's id in tokens and key sets: the hash of its SubjectPublicKeyInfo.
    pub fn id(&self) -> String {
        encode(digest::digest(&digest::SHA256, &self.to_spki()))
    }

    fn to_spki(&self) -> Vec<u8> {
        const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
        const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
        let algorithm = match self {
            PublicKey::Rsa { .. } => der(0x30, &[RSA]),
            PublicKey::Ec { curve, .. } => der(0x30, &[EC, curve.oid()]),
        };
        der(0x30, &[&algorithm, &der(0x03, &[&[0], &self.raw()])])
    }

    /// The key's bits inside a SubjectPublicKeyInfo, which is also what verification takes.
    fn raw(&self) -> Vec<u8> {
        match self {
            PublicKey::Rsa { n, e } => der(0x30, &[&der_positive(n), &der_positive(e)]),
            PublicKey::Ec { point, .. } => point.clone(),
        }
    }

    /// Whether this key made `signature` over `message`; false if the algorithm is not one for this key.
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let Some(verification) = self.verification(algorithm) else { return false };
        UnparsedPublicKey::new(verification, self.raw()).verify(message, signature).is_ok()
    }

    fn verification(&self, algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
        let curve = match self {
            PublicKey::Rsa { .. } => None,
            PublicKey::Ec { curve, .. } => Some(*curve),
        };
        match (curve, algorithm) {
            (None, Algorithm::Rs256) => Some(&signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
            (None, Algorithm::Rs384) => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
            (None, Algorithm::Rs512) => Some(&signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
            (None, Algorithm::Ps256) => Some(&signature::RSA_PSS_2048_8192_SHA256),
            (None, Algorithm::Ps384) => Some(&signature::RSA_PSS_2048_8192_SHA384),
            (None, Algorithm::Ps512) => Some(&signature::RSA_PSS_2048_8192_SHA512),
            (Some(Curve::P256), Algorithm::Es256) => Some(&signature::ECDSA_P256_SHA256_FIXED),
            (Some(Curve::P384), Algorithm::Es384) => Some(&signature::ECDSA_P384_SHA384_FIXED),
            (Some(Curve::P521), Algorithm::Es512) => Some(&signature::ECDSA_P521_SHA512_FIXED),
            _ => None,
        }
    }
}

/// One DER element: tag, length, the parts joined.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|p| p.len()).sum();
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let used = bytes.iter().skip_while(|b| **b == 0);
        out.push(0x80 | used.clone().count() as u8);
        out.extend(used);
    }
    parts.iter().for_each(|p| out.extend_from_slice(p));
    out
}

/// A positive integer: a zero in front if its first bit would make it negative.
fn der_positive(bytes: &[u8]) -> Vec<u8> {
    let sign: &[u8] = if bytes.first().is_some_and(|b| b & 0x80 != 0) { &[0] } else { &[] };
    der(0x02, &[sign, bytes])
}
