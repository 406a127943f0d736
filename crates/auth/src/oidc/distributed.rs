//! Distributed claims: groups that the token does not hold but says where to fetch, as a token of their own.

use super::Verification;
use super::provider::{KeySource, discover};
use crate::jwt::UnverifiedToken;
use crate::remote::{FetchRequest, HttpFetch};
use kubelith_meta::text::quote;
use kubelith_meta::{Str, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Issuers of distributed claims whose keys are kept.
const MAX_ISSUERS: usize = 64;

pub struct Distributed {
    /// The only claim that is looked for elsewhere: that of groups. Empty: none.
    claim: Str,
    /// Held for a lookup or an insertion only.
    keys: Mutex<HashMap<String, Arc<KeySource>>>,
}

impl Distributed {
    pub fn new(claim: Str) -> Distributed {
        Distributed { claim, keys: Mutex::default() }
    }

    /// Adds the claim if the token says where it is.
    pub(super) async fn expand(
        &self,
        claims: &mut Value,
        client: &Arc<dyn HttpFetch>,
        verification: &Verification,
    ) -> Result<(), String> {
        let Some((url, access_token)) = self.source(claims)? else { return Ok(()) };
        let doing = |e: String| format!("while getting distributed claim {}: {e}", quote(&self.claim));
        let request = FetchRequest { bearer_token: access_token, ..FetchRequest::get(url.clone()) };
        let response = client.fetch(request).await.map_err(|e| doing(e.to_string()))?;
        if !(200..=226).contains(&response.status) {
            return Err(doing(format!("error while getting distributed claim JWT: {}", response.status)));
        }
        let text = String::from_utf8_lossy(&response.body);
        let token = UnverifiedToken::parse(text.trim()).ok_or_else(|| {
            format!(
                "getting untrusted issuer from endpoint {url} failed for claim {}: malformed token",
                quote(&self.claim)
            )
        })?;
        let issuer = super::claimed_issuer(&token).unwrap_or("").to_string();
        let keys = self.keys_of(&issuer, client).await?;
        let distributed = verification.verify(&token, &issuer, &keys).await;
        let distributed = distributed.map_err(|e| format!("verify distributed claim token: {e}"))?;
        let value = distributed.get(&self.claim).cloned().ok_or_else(|| {
            format!("jwt returned by distributed claim endpoint {} did not contain claim: {}", quote(&url), self.claim)
        })?;
        claims.set_at(&[&self.claim], value);
        Ok(())
    }

    /// The endpoint of the claim and the token for it.
    fn source(&self, claims: &Value) -> Result<Option<(String, Option<String>)>, String> {
        if self.claim.is_empty() || claims.get(&self.claim).is_some() {
            return Ok(None);
        }
        let Some(names) = claims.get("_claim_names") else { return Ok(None) };
        if names.as_object().is_none() {
            return Err("oidc: error parsing distributed claim names: expected an object".into());
        }
        let Some(sources) = claims.get("_claim_sources") else { return Err("oidc: no claim sources".into()) };
        if sources.as_object().is_none() {
            return Err("oidc: could not parse claim sources: expected an object".into());
        }
        let Some(source) = names.get(&self.claim).and_then(Value::as_str) else { return Ok(None) };
        let Some(endpoint) = sources.get(source) else {
            return Err(format!("id token _claim_names contained a source {source} missing in _claims_sources"));
        };
        let url = endpoint.str_at(&["endpoint"]);
        let token = Some(endpoint.str_at(&["access_token"])).filter(|t| !t.is_empty());
        Ok((!url.is_empty()).then(|| (url.to_string(), token.map(str::to_string))))
    }

    async fn keys_of(&self, issuer: &str, client: &Arc<dyn HttpFetch>) -> Result<Arc<KeySource>, String> {
        if let Some(keys) = self.keys.lock().expect("no panic while held").get(issuer) {
            return Ok(keys.clone());
        }
        let jwks_uri = discover(client.as_ref(), issuer, "").await;
        let jwks_uri = jwks_uri.map_err(|e| format!("verifying untrusted issuer {issuer} failed: {e}"))?;
        let keys = Arc::new(KeySource::new(client.clone(), jwks_uri));
        let mut all = self.keys.lock().expect("no panic while held");
        if all.len() >= MAX_ISSUERS {
            all.clear();
        }
        all.insert(issuer.to_string(), keys.clone());
        Ok(keys)
    }
}
