//! Making service account tokens.

use super::{KeyRing, username};
use crate::json;
use crate::jwt::{self, signer::Signer};
use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use kubelith_meta::time::Time;
use kubelith_meta::{Map, Str, Value, random};
use std::sync::Arc;

/// Of tokens that live in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// Signs tokens in the name of one issuer.
pub struct TokenIssuer {
    issuer: String,
    signing: Signing,
}

enum Signing {
    Own(Own),
    External(Arc<dyn ExternalSigner>),
}

struct Own {
    signer: ArcSwap<Signer>,
    /// Where new keys are told, if there may be any.
    ring: Option<KeyRing>,
}

impl Own {
    fn signer(&self) -> Result<Arc<Signer>, String> {
        if let Some(ring) = &self.ring {
            ring.renew(&self.signer)?;
        }
        Ok(self.signer.load_full())
    }
}

/// A signer outside of this program, which also says by which keys its tokens are known.
pub trait ExternalSigner: Send + Sync {
    /// The token with these claims, given as they stand in it: base64.
    fn sign(&self, claims: String) -> BoxFuture<'_, Result<String, String>>;

    /// Asks for the keys again. Whether that worked shows in the keys.
    fn refresh_keys(&self) -> BoxFuture<'_, ()>;
}

/// The object whose life a token shares.
#[derive(Debug, Clone, Copy)]
pub enum BoundTo<'a> {
    Nothing,
    Pod { pod: &'a Value, node: Option<NodeRef<'a>> },
    Secret(&'a Value),
    Node(&'a Value),
}

/// The node a pod runs on; it may be gone, then it has a name only.
#[derive(Debug, Clone, Copy)]
pub struct NodeRef<'a> {
    pub name: &'a str,
    pub uid: &'a str,
}

#[derive(Debug)]
pub struct TokenSpec<'a> {
    pub service_account: &'a Value,
    pub bound_to: BoundTo<'a>,
    pub audiences: &'a [Str],
    pub expiration_seconds: i64,
    /// After this, use of the token is reported although it still works. Zero: never.
    pub warn_after_seconds: i64,
    pub now: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedToken {
    pub token: String,
    /// The token's `jti`.
    pub id: String,
}

impl TokenIssuer {
    pub fn new(issuer: impl Into<String>, signer: Signer) -> TokenIssuer {
        let own = Own { signer: ArcSwap::from_pointee(signer), ring: None };
        TokenIssuer { issuer: issuer.into(), signing: Signing::Own(own) }
    }

    /// Of a server that can be copied.
    #[must_use]
    pub fn with_ring(mut self, ring: KeyRing) -> TokenIssuer {
        if let Signing::Own(own) = &mut self.signing {
            own.ring = Some(ring);
        }
        self
    }

    pub fn external(issuer: impl Into<String>, signer: Arc<dyn ExternalSigner>) -> TokenIssuer {
        TokenIssuer { issuer: issuer.into(), signing: Signing::External(signer) }
    }

    /// Our own, to sign what we would not.
    #[cfg(test)]
    pub(crate) fn signer(&self) -> Arc<Signer> {
        match &self.signing {
            Signing::Own(own) => own.signer().unwrap(),
            Signing::External(_) => panic!("the signer is another program"),
        }
    }

    pub async fn issue(&self, spec: &TokenSpec<'_>) -> Result<IssuedToken, String> {
        let id = random::uid(random::random_bits).to_string();
        let claims = self.claims(spec, &id);
        let token = match &self.signing {
            Signing::Own(own) => own.signer()?.sign(&claims)?,
            Signing::External(signer) => signer.sign(jwt::encode(json::write(&claims))).await?,
        };
        Ok(IssuedToken { token, id })
    }

    /// A token of the old kind, which lives in a Secret and does not expire. `None` if another program signs: those that
    /// we know sign no such tokens.
    pub fn issue_legacy(&self, service_account: &Value, secret: &str) -> Result<Option<String>, String> {
        let Signing::Own(own) = &self.signing else { return Ok(None) };
        let meta = service_account.meta();
        let claims = Value::from([
            ("iss", Value::from(LEGACY_ISSUER)),
            ("kubernetes.io/serviceaccount/namespace", meta.namespace().into()),
            ("kubernetes.io/serviceaccount/secret.name", secret.into()),
            ("kubernetes.io/serviceaccount/service-account.name", meta.name().into()),
            ("kubernetes.io/serviceaccount/service-account.uid", meta.uid().into()),
            ("sub", username(meta.namespace(), meta.name()).into()),
        ]);
        own.signer()?.sign(&claims).map(Some)
    }

    fn claims(&self, spec: &TokenSpec<'_>, id: &str) -> Value {
        let now = spec.now.unix_seconds();
        let account = spec.service_account;
        let (namespace, name) = (account.str_at(&["metadata", "namespace"]), account.str_at(&["metadata", "name"]));
        let mut kubernetes = Map::new();
        kubernetes.insert("namespace", namespace);
        kubernetes.insert("serviceaccount", reference_to(account));
        match spec.bound_to {
            BoundTo::Nothing => {}
            BoundTo::Pod { pod, node } => {
                kubernetes.insert("pod", reference_to(pod));
                if let Some(node) = node {
                    kubernetes.insert("node", reference(node.name, node.uid));
                }
            }
            BoundTo::Secret(secret) => drop(kubernetes.insert("secret", reference_to(secret))),
            BoundTo::Node(node) => drop(kubernetes.insert("node", reference_to(node))),
        }
        if spec.warn_after_seconds != 0 {
            kubernetes.insert("warnafter", now.saturating_add(spec.warn_after_seconds));
        }
        let mut claims = Map::new();
        if !spec.audiences.is_empty() {
            claims.insert("aud", spec.audiences.to_vec());
        }
        claims.insert("exp", now.saturating_add(spec.expiration_seconds));
        claims.insert("iat", now);
        claims.insert("iss", self.issuer.as_str());
        claims.insert("jti", id);
        claims.insert("kubernetes.io", kubernetes);
        claims.insert("nbf", now);
        claims.insert("sub", username(namespace, name));
        Value::Object(claims)
    }
}

fn reference_to(object: &Value) -> Value {
    reference(object.str_at(&["metadata", "name"]), object.str_at(&["metadata", "uid"]))
}

/// Empty members are left out.
fn reference(name: &str, uid: &str) -> Value {
    Value::Object([("name", name), ("uid", uid)].into_iter().filter(|(_, v)| !v.is_empty()).collect())
}
