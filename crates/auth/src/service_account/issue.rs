//! Making service account tokens.

use super::username;
use crate::jwt::signer::Signer;
use kubelith_meta::time::Time;
use kubelith_meta::{Map, Str, Value};

/// Signs tokens in the name of one issuer.
#[derive(Debug)]
pub struct TokenIssuer {
    issuer: String,
    signer: Signer,
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
        TokenIssuer { issuer: issuer.into(), signer }
    }

    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    pub fn issue(&self, spec: &TokenSpec<'_>) -> Result<IssuedToken, String> {
        let id = uuid::Uuid::new_v4().to_string();
        let token = self.signer.sign(&self.claims(spec, &id))?;
        Ok(IssuedToken { token, id })
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
