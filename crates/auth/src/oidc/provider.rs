//! An issuer's discovery document and its keys, fetched anew when a token is signed with an unknown one.

use super::metrics::{IssuerMetrics, Uncounted};
use crate::error::AuthError;
use crate::json;
use crate::jwt::UnverifiedToken;
use crate::jwt::key::PublicKey;
use crate::remote::{FetchRequest, HttpFetch};
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use kubelith_meta::Value;
use kubelith_meta::text::quote;
use std::sync::{Arc, Mutex};

/// Keys of an issuer that are kept; more make a set invalid.
const MAX_KEYS: usize = 1000;

/// The address of the issuer's keys.
pub async fn discover(client: &dyn HttpFetch, issuer: &str, discovery_url: &str) -> Result<String, AuthError> {
    let url = match discovery_url {
        "" => format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/')),
        url => url.to_string(),
    };
    let document = get_json(client, &url).await?;
    let named = document.str_at(&["issuer"]);
    if named != issuer {
        return Err(AuthError::new(format!(
            "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
            quote(issuer),
            quote(named)
        )));
    }
    match document.str_at(&["jwks_uri"]) {
        "" => Err(AuthError::new("provider did not return JWKS URL")),
        uri => Ok(uri.to_string()),
    }
}

pub async fn get_json(client: &dyn HttpFetch, url: &str) -> Result<Value, AuthError> {
    get_text(client, url).await.map(|(value, _)| value)
}

/// The document, and its text.
async fn get_text(client: &dyn HttpFetch, url: &str) -> Result<(Value, Bytes), AuthError> {
    let failed = |e: &dyn std::fmt::Display| AuthError::new(format!("Get {}: {e}", quote(url)));
    let response = client.fetch(FetchRequest::get(url)).await.map_err(|e| failed(&e))?;
    if response.status != 200 {
        return Err(failed(&format!("unexpected status {}", response.status)));
    }
    let value = json::parse(&response.body).map_err(|e| failed(&e))?;
    Ok((value, response.body))
}

type Fetch = BoxFuture<'static, Result<Arc<Keys>, AuthError>>;

/// Keys with their ids.
type Keys = Vec<(String, PublicKey)>;

pub struct KeySource {
    client: Arc<dyn HttpFetch>,
    url: String,
    keys: Arc<ArcSwap<Keys>>,
    /// The fetch under way, if any: tokens with unknown keys that come together share one.
    fetching: Mutex<Option<WeakShared<Fetch>>>,
    issuer: Arc<str>,
    metrics: Arc<dyn IssuerMetrics>,
}

impl KeySource {
    pub fn new(client: Arc<dyn HttpFetch>, url: String) -> KeySource {
        let (keys, fetching) = (Arc::default(), Mutex::default());
        KeySource { client, url, keys, fetching, issuer: "".into(), metrics: Arc::new(Uncounted) }
    }

    /// Fetches are told as those of `issuer`.
    pub fn counted(self, issuer: &str, metrics: &Arc<dyn IssuerMetrics>) -> KeySource {
        KeySource { issuer: issuer.into(), metrics: metrics.clone(), ..self }
    }

    /// The claims, if one of the issuer's keys signed them: one that is known, or one that is new.
    pub async fn verified_claims(&self, token: &UnverifiedToken<'_>) -> Result<Value, AuthError> {
        if let Some(claims) = verify_with(&self.keys.load(), token) {
            return Ok(claims);
        }
        let fetched = self.fetch().await.map_err(|e| AuthError::new(format!("fetching keys {e}")))?;
        verify_with(&fetched, token).ok_or_else(|| AuthError::new("failed to verify id token signature"))
    }

    fn fetch(&self) -> Shared<Fetch> {
        let mut fetching = self.fetching.lock().expect("no panic while held");
        if let Some(running) = fetching.as_ref().and_then(WeakShared::upgrade).filter(|f| f.peek().is_none()) {
            return running;
        }
        let (client, url, keys) = (self.client.clone(), self.url.clone(), self.keys.clone());
        let (issuer, metrics) = (self.issuer.clone(), self.metrics.clone());
        let fetch: Shared<Fetch> = async move {
            let answer = get_text(client.as_ref(), &url).await;
            metrics.asked_for_keys(&issuer, answer.as_ref().ok().map(|(_, text)| text.as_ref()));
            let fetched = Arc::new(parse_keys(&answer?.0)?);
            keys.store(fetched.clone());
            Ok(fetched)
        }
        .boxed()
        .shared();
        *fetching = fetch.downgrade();
        fetch
    }
}

fn verify_with(keys: &Keys, token: &UnverifiedToken<'_>) -> Option<Value> {
    let fits = |id: &str| token.key_id.is_empty() || token.key_id == id;
    keys.iter().filter(|(id, _)| fits(id)).find_map(|(_, key)| token.verify(key)).cloned()
}

/// Keys of kinds that we do not know are skipped: an issuer may publish them for others.
fn parse_keys(set: &Value) -> Result<Keys, AuthError> {
    let Some(list) = set.get("keys").and_then(Value::as_array) else {
        return Err(AuthError::new("failed to decode keys: no list of keys"));
    };
    if list.len() > MAX_KEYS {
        return Err(AuthError::new(format!("too many keys: {}", list.len())));
    }
    let for_signatures = |jwk: &&Value| matches!(jwk.str_at(&["use"]), "" | "sig");
    let keys = list.iter().filter(for_signatures);
    Ok(keys.filter_map(|jwk| Some((jwk.str_at(&["kid"]).to_string(), PublicKey::from_jwk(jwk)?))).collect())
}
