//! Private keys that sign tokens.

use super::encode;
use super::key::PublicKey;
use crate::json;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair, RSA_PKCS1_SHA256,
};
use kubelith_meta::Value;
use rustls_pki_types::pem::{self, SectionKind};

pub struct Signer {
    key: PrivateKey,
    public: PublicKey,
}

enum PrivateKey {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("key_id", &self.public.id()).finish_non_exhaustive()
    }
}

impl Signer {
    /// The first private key of a PEM file.
    pub fn from_pem(mut pem: &[u8]) -> Result<Signer, String> {
        while let Ok(Some((kind, der))) = pem::from_buf(&mut pem) {
            if let Some(signer) = Signer::from_der(kind, &der) {
                return Ok(signer);
            }
        }
        Err("data does not contain a valid RSA or ECDSA private key".into())
    }

    pub(super) fn from_der(kind: SectionKind, der: &[u8]) -> Option<Signer> {
        let rsa = match kind {
            SectionKind::RsaPrivateKey => RsaKeyPair::from_der(der).ok(),
            SectionKind::PrivateKey => RsaKeyPair::from_pkcs8(der).ok(),
            _ => None,
        };
        if let Some(key) = rsa {
            let spki: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
            let public = PublicKey::from_spki(spki.as_ref())?;
            return Some(Signer { key: PrivateKey::Rsa(key), public });
        }
        let curves: [&'static EcdsaSigningAlgorithm; 3] =
            [&ECDSA_P256_SHA256_FIXED_SIGNING, &ECDSA_P384_SHA384_FIXED_SIGNING, &ECDSA_P521_SHA512_FIXED_SIGNING];
        let key = curves.into_iter().find_map(|curve| match kind {
            SectionKind::EcPrivateKey => EcdsaKeyPair::from_private_key_der(curve, der).ok(),
            SectionKind::PrivateKey => EcdsaKeyPair::from_pkcs8(curve, der).ok(),
            _ => None,
        })?;
        let spki: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
        let public = PublicKey::from_spki(spki.as_ref())?;
        Some(Signer { key: PrivateKey::Ec(key), public })
    }

    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// A signed token with these claims.
    pub fn sign(&self, claims: &Value) -> Result<String, String> {
        let header = format!(r#"{{"alg":"{}","kid":"{}"}}"#, self.public.signing_algorithm().name(), self.public.id());
        let signed = format!("{}.{}", encode(header), encode(json::write(claims)));
        let signature = self.raw_signature(signed.as_bytes()).ok_or("the key does not sign")?;
        Ok(format!("{signed}.{}", encode(signature)))
    }

    fn raw_signature(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.key {
            PrivateKey::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            PrivateKey::Ec(key) => key.sign(&random, message).ok().map(|s| s.as_ref().to_vec()),
        }
    }

    /// A new RSA key of 2048 bits, in PEM: what a server makes for itself. It takes a tenth of a second or so, but
    /// RS256 is the one algorithm that every verifier of tokens knows.
    pub fn generate_rsa_pem() -> Result<String, String> {
        let key = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|e| e.to_string())?;
        let pkcs8: Pkcs8V1Der<'_> = key.as_der().map_err(|e| e.to_string())?;
        Ok(private_key_pem(pkcs8.as_ref()))
    }

    /// A new key on the P-256 curve, in PEM: made in no time.
    pub fn generate_pem() -> Result<String, String> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|e| e.to_string())?;
        let pkcs8 = key.to_pkcs8v1().map_err(|e| e.to_string())?;
        Ok(private_key_pem(pkcs8.as_ref()))
    }
}

fn private_key_pem(pkcs8: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(pkcs8);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|i| &text[i..text.len().min(i + 64)]).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}
