//! The keys that service account tokens may be signed with, and the documents that publish them.

use crate::json;
use crate::jwt::key::PublicKey;
use kubelith_meta::Value;
use std::collections::{BTreeSet, HashMap};

pub const OPENID_CONFIG_PATH: &str = "/.well-known/openid-configuration";
pub const JWKS_PATH: &str = "/openid/v1/jwks";
/// For how long clients may keep the two documents, in seconds.
pub const DOCUMENT_MAX_AGE: u32 = 3600;

#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<NamedKey>,
    by_id: HashMap<String, Vec<usize>>,
}

/// A key with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKey {
    pub id: String,
    pub key: PublicKey,
    pub publication: Publication,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publication {
    Published,
    /// It verifies what was signed with it once, and signs nothing any more.
    Withheld,
}

impl KeySet {
    pub fn new(keys: Vec<PublicKey>) -> KeySet {
        let named = |key: PublicKey| NamedKey { id: key.id(), key, publication: Publication::Published };
        KeySet::named(keys.into_iter().map(named).collect())
    }

    /// Of keys that have their ids from somebody else.
    pub fn named(keys: Vec<NamedKey>) -> KeySet {
        let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, key) in keys.iter().enumerate() {
            by_id.entry(key.id.clone()).or_default().push(i);
        }
        KeySet { keys, by_id }
    }

    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter().map(|named| &named.key)
    }

    /// Whether there is a key of this id, or any if it is empty.
    pub fn has(&self, key_id: &str) -> bool {
        self.candidates(key_id).next().is_some()
    }

    /// Whether a key of this id must not sign.
    pub fn withholds(&self, key_id: &str) -> bool {
        self.keys.iter().any(|key| key.id == key_id && key.publication == Publication::Withheld)
    }

    fn published(&self) -> impl Iterator<Item = &NamedKey> {
        self.keys.iter().filter(|key| key.publication == Publication::Published)
    }

    /// The keys with this id; all for a token that names none.
    pub fn candidates(&self, key_id: &str) -> impl Iterator<Item = &PublicKey> {
        let all = key_id.is_empty().then_some(self.keys.iter().map(|key| &key.key));
        let named = self.by_id.get(key_id).into_iter().flatten().map(|i| &self.keys[*i].key);
        all.into_iter().flatten().chain(named)
    }

    /// The JSON Web Key Set.
    pub fn jwks_json(&self) -> String {
        let keys: Vec<String> = self.published().map(|key| key.key.to_jwk_json_named(&key.id)).collect();
        format!(r#"{{"keys":[{}]}}"#, keys.join(","))
    }

    /// The OpenID discovery document of `issuer`.
    pub fn openid_config_json(&self, issuer: &str, jwks_uri: &str) -> String {
        let algorithms: BTreeSet<&str> = self.published().map(|k| k.key.signing_algorithm().name()).collect();
        let list = |values: Vec<&str>| json::write(&Value::from(values));
        format!(
            r#"{{"issuer":{},"jwks_uri":{},"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":{}}}"#,
            json::write(&issuer.into()),
            json::write(&jwks_uri.into()),
            list(algorithms.into_iter().collect())
        )
    }
}

/// Where the key set is published: the configured address, or one made of the server's external address.
/// Fails if the issuer cannot be an OpenID issuer, in which case the server publishes nothing.
pub fn jwks_uri(issuer: &str, configured: &str, external_address: &str) -> Result<String, String> {
    if issuer.is_empty() {
        return Err("empty issuer URL".into());
    }
    if configured.is_empty() && external_address.is_empty() {
        return Err("either the JWKS URI or the default external address, or both, must be set".into());
    }
    if !issuer.starts_with("https:") {
        return Err(format!("issuer URL must use https scheme, got: {issuer}"));
    }
    let before_fragment = issuer.split('#').next().unwrap_or("");
    if before_fragment.split_once('?').is_some_and(|(_, query)| !query.is_empty()) {
        return Err(format!("issuer URL may not include a query, got: {issuer}"));
    }
    if issuer.split_once('#').is_some_and(|(_, fragment)| !fragment.is_empty()) {
        return Err(format!("issuer URL may not include a fragment, got: {issuer}"));
    }
    match configured {
        "" => Ok(format!("https://{external_address}{JWKS_PATH}")),
        uri if uri.starts_with("https:") => Ok(uri.to_string()),
        uri => Err(format!("jwksURI requires https scheme, parsed as: {uri}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::signer::Signer;

    #[test]
    fn documents() {
        let key = PublicKey::list_from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap().remove(0);
        let keys = KeySet::new(vec![key.clone()]);
        let jwks = json::parse(keys.jwks_json().as_bytes()).unwrap();
        let jwk = &jwks.get("keys").unwrap().as_array().unwrap()[0];
        assert_eq!(jwk.str_at(&["kid"]), key.id());
        assert_eq!(PublicKey::from_jwk(jwk), Some(key));
        assert_eq!(
            keys.openid_config_json("https://i", "https://i/keys"),
            concat!(
                r#"{"issuer":"https://i","jwks_uri":"https://i/keys","response_types_supported":["id_token"],"#,
                r#""subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
            )
        );
    }

    #[test]
    fn keys_of_others_keep_their_ids() {
        let key = PublicKey::list_from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap().remove(0);
        let named = |id: &str, publication| NamedKey { id: id.into(), key: key.clone(), publication };
        let keys = KeySet::named(vec![named("a\"b", Publication::Published), named("old", Publication::Withheld)]);
        let jwks = json::parse(keys.jwks_json().as_bytes()).unwrap();
        let published = jwks.get("keys").unwrap().as_array().unwrap();
        assert_eq!((published.len(), published[0].str_at(&["kid"])), (1, "a\"b"));
        assert!(keys.has("old") && keys.has("") && !keys.has(&key.id()));
        assert!(keys.withholds("old") && !keys.withholds("a\"b"));
    }

    #[test]
    fn addresses() {
        let cases = [
            ("https://i", "", "1.2.3.4:6443", Ok("https://1.2.3.4:6443/openid/v1/jwks")),
            ("https://i", "https://k", "x", Ok("https://k")),
            ("https://i", "http://k", "x", Err("jwksURI requires https scheme, parsed as: http://k")),
            ("i", "", "x", Err("issuer URL must use https scheme, got: i")),
            ("https://i?a", "", "x", Err("issuer URL may not include a query, got: https://i?a")),
            ("https://i#a", "", "x", Err("issuer URL may not include a fragment, got: https://i#a")),
            ("", "", "x", Err("empty issuer URL")),
        ];
        for (issuer, configured, external, want) in cases {
            let got = jwks_uri(issuer, configured, external);
            assert_eq!(got, want.map(str::to_string).map_err(str::to_string));
        }
    }
}
