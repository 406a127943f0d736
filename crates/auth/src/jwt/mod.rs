//! JSON Web Tokens in the compact form, signed with RSA or ECDSA keys. Nothing else is a token: no `none`, no
//! shared secrets, no keys or certificates from the token's own header.

pub mod claims;
pub mod key;
pub mod signer;

use crate::json;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use key::{Algorithm, PublicKey};
use kubelith_meta::Value;

/// Tokens longer than this are refused unread. HTTP header limits let less through; a review's body more.
const MAX_LENGTH: usize = 1 << 20;

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// A token taken apart. Nothing in it is to be believed before `verify`.
#[derive(Debug)]
pub struct UnverifiedToken<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    algorithm: Option<Algorithm>,
    critical: bool,
    pub key_id: String,
    claims: Value,
    /// The first member that an object of the claims has twice.
    repeated: Option<String>,
}

impl<'a> UnverifiedToken<'a> {
    /// `None` if this is not a JWT: perhaps another kind of bearer token.
    pub fn parse(token: &'a str) -> Option<UnverifiedToken<'a>> {
        if token.len() > MAX_LENGTH {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        if payload.contains('.') {
            return None;
        }
        let (header, None) = json::parse_noting_repeats(&decode(header)?).ok()? else { return None };
        let (claims, repeated) =
            json::parse_noting_repeats(&decode(payload)?).ok().filter(|(c, _)| c.as_object().is_some())?;
        let header_object = header.as_object()?;
        let key_id = match header_object.get("kid") {
            None | Some(Value::Null) => String::new(),
            Some(kid) => kid.as_str()?.to_string(),
        };
        Some(UnverifiedToken {
            signed,
            signature: decode(signature)?,
            algorithm: Algorithm::named(header.str_at(&["alg"])),
            critical: header_object.contains_key("crit"),
            key_id,
            claims,
            repeated,
        })
    }

    /// The issuer it claims to be from, to choose whom to ask.
    pub fn claimed_issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// The path of a member that is there twice. Which of the two counts depends on who reads them.
    pub fn repeated(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    pub fn algorithm(&self) -> Option<Algorithm> {
        self.algorithm
    }

    /// The claims, if `key` signed them.
    pub fn verify(&self, key: &PublicKey) -> Option<&Value> {
        let algorithm = self.algorithm.filter(|_| !self.critical)?;
        key.verify(algorithm, self.signed.as_bytes(), &self.signature).then_some(&self.claims)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
