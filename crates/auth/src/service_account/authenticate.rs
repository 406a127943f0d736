//! Verifying service account tokens: today's, bound to objects and of limited life, and the legacy ones that
//! are kept in Secrets.

use super::issue::ExternalSigner;
use super::keys::KeySet;
use super::legacy::{LegacyTokens, validate_legacy};
use super::{groups, username};
use crate::authn::audience::intersect;
use crate::error::AuthError;
use crate::jwt::UnverifiedToken;
use crate::jwt::claims::{Claims, LEEWAY_SECONDS, TimeError, date};
use crate::objects::{Looked, ObjectGetter};
use crate::stats::{TokenForm, TokenStats};
use crate::text::quote_list;
use crate::traits::{Answer, AuthResponse, Authentication, Notes, TokenAuthenticator};
use crate::user::{EXTRA_CREDENTIAL_ID, User};
use arc_swap::ArcSwap;
use kubelith_meta::text::quote;
use kubelith_meta::time::{Clock, Time};
use kubelith_meta::{Str, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const EXTRA_POD_NAME: &str = "authentication.kubernetes.io/pod-name";
pub const EXTRA_POD_UID: &str = "authentication.kubernetes.io/pod-uid";
pub const EXTRA_NODE_NAME: &str = "authentication.kubernetes.io/node-name";
pub const EXTRA_NODE_UID: &str = "authentication.kubernetes.io/node-uid";

const INVALIDATED: &str = "service account token has been invalidated";

/// Verifies the tokens of the configured issuers, or of the legacy one.
pub struct ServiceAccountTokens {
    form: Form,
    keys: Arc<ArcSwap<KeySet>>,
    /// Audiences of tokens that name none, and wanted where the request wants none.
    api_audiences: Vec<Str>,
    objects: Arc<dyn ObjectGetter>,
    clock: Arc<dyn Clock>,
    stats: Arc<TokenStats>,
    /// Who may know keys that are not among `keys` yet.
    signer: Option<Arc<dyn ExternalSigner>>,
}

enum Form {
    Bound { issuers: Vec<String> },
    Legacy(LegacyTokens),
}

pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

impl ServiceAccountTokens {
    pub fn bound(
        issuers: Vec<String>,
        keys: Arc<ArcSwap<KeySet>>,
        api_audiences: Vec<Str>,
        objects: Arc<dyn ObjectGetter>,
        clock: Arc<dyn Clock>,
    ) -> ServiceAccountTokens {
        ServiceAccountTokens {
            form: Form::Bound { issuers },
            keys,
            api_audiences,
            objects,
            clock,
            stats: Arc::default(),
            signer: None,
        }
    }

    pub fn legacy(
        legacy: LegacyTokens,
        keys: Arc<ArcSwap<KeySet>>,
        api_audiences: Vec<Str>,
        objects: Arc<dyn ObjectGetter>,
        clock: Arc<dyn Clock>,
    ) -> ServiceAccountTokens {
        let stats = Arc::default();
        ServiceAccountTokens { form: Form::Legacy(legacy), keys, api_audiences, objects, clock, stats, signer: None }
    }

    /// Asks this signer about keys that are not known.
    pub fn signed_by(mut self, signer: Option<Arc<dyn ExternalSigner>>) -> ServiceAccountTokens {
        self.signer = signer;
        self
    }

    /// Counts in `stats` from now on.
    pub fn counted_in(mut self, stats: Arc<TokenStats>) -> ServiceAccountTokens {
        self.stats = stats;
        self
    }

    fn has_issuer(&self, issuer: &str) -> bool {
        match &self.form {
            Form::Bound { issuers } => issuers.iter().any(|i| i == issuer),
            Form::Legacy(_) => issuer == LEGACY_ISSUER,
        }
    }

    async fn check(&self, text: &str, token: UnverifiedToken<'_>, wanted: &[Str]) -> Authentication {
        if let Some(signer) = &self.signer
            && !self.keys.load().has(&token.key_id)
        {
            signer.refresh_keys().await;
        }
        let raw = self.verified_claims(&token)?;
        if let Some(key) = token.repeated().and_then(repeated_claim) {
            return Err(AuthError::new(format!("json: duplicate key '{key}' in object")));
        }
        let claims = Claims::read(raw).map_err(|e| AuthError::new(e.to_string()))?;
        if !self.has_issuer(&claims.issuer) {
            return Err(AuthError::new(format!("token issuer {} is invalid", quote(&claims.issuer))));
        }
        let mut notes = Notes::default();
        let own: Vec<Str> = if claims.audience.is_empty() {
            notes.annotations.push(("authentication.k8s.io/legacy-token", claims.subject.clone()));
            self.api_audiences.clone()
        } else {
            claims.audience.iter().map(Str::from).collect()
        };
        let wanted = if wanted.is_empty() { &self.api_audiences } else { wanted };
        let audiences = intersect(&own, wanted);
        if audiences.is_empty() && !self.api_audiences.is_empty() {
            return Err(AuthError::new(format!(
                "token audiences {} is invalid for the target audiences {}",
                quote_list(&own),
                quote_list(wanted)
            )));
        }
        let (objects, now) = (self.objects.as_ref(), self.clock.now());
        let (form, user) = match &self.form {
            Form::Bound { .. } => (TokenForm::Bound, validate_bound(&claims, raw, objects, now, &mut notes).await),
            Form::Legacy(legacy) => {
                let user = validate_legacy(legacy, text, &claims, raw, objects, now, &mut notes).await;
                (TokenForm::Legacy, user)
            }
        };
        self.stats.service_account(form, &notes, user.is_ok());
        let user = user?;
        Ok(Some(AuthResponse { user: Arc::new(user), audiences, notes }))
    }

    fn verified_claims<'t>(&self, token: &'t UnverifiedToken<'_>) -> Result<&'t Value, AuthError> {
        let keys = self.keys.load();
        let mut candidates = keys.candidates(&token.key_id).peekable();
        if candidates.peek().is_none() {
            return Err(AuthError::new("invalid signature, no keys found"));
        }
        let verified = candidates.find_map(|key| token.verify(key));
        verified.ok_or_else(|| AuthError::new("go-jose/go-jose: error in cryptographic primitive"))
    }
}

/// The name of a repeated member, if it is one that is read: a claim, or one of ours.
fn repeated_claim(path: &str) -> Option<&str> {
    const OWN: &str = "kubernetes.io";
    match path.strip_prefix(OWN) {
        Some(rest) if rest.starts_with('.') => rest.rsplit('.').next(),
        // What is inside of other claims is passed over.
        Some("") => Some(path),
        _ => Some(path).filter(|path| !path.contains(['.', '[']) || path.starts_with("kubernetes.io/")),
    }
}

impl TokenAuthenticator for ServiceAccountTokens {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        // A token of another issuer is another authenticator's.
        let ours = UnverifiedToken::parse(token).filter(|t| t.claimed_issuer().is_some_and(|i| self.has_issuer(i)));
        match ours {
            Some(unverified) => Answer::pending(self.check(token, unverified, audiences)),
            None => Answer::Ready(Ok(None)),
        }
    }
}

/// The private claims of today's tokens.
struct BoundClaims<'a> {
    namespace: &'a str,
    account: Reference<'a>,
    pod: Option<Reference<'a>>,
    secret: Option<Reference<'a>>,
    node: Option<Reference<'a>>,
    warn_after: Option<i64>,
}

#[derive(Clone, Copy)]
struct Reference<'a> {
    name: &'a str,
    uid: &'a str,
}

impl<'a> BoundClaims<'a> {
    fn read(raw: &'a Value) -> Result<BoundClaims<'a>, AuthError> {
        let empty = &Value::Null;
        let own = raw.get("kubernetes.io").unwrap_or(empty);
        let reference = |key: &str| -> Option<Reference<'a>> {
            let value = own.get(key).filter(|v| !v.is_null())?;
            Some(Reference { name: value.str_at(&["name"]), uid: value.str_at(&["uid"]) })
        };
        Ok(BoundClaims {
            namespace: own.str_at(&["namespace"]),
            account: reference("serviceaccount").unwrap_or(Reference { name: "", uid: "" }),
            pod: reference("pod"),
            secret: reference("secret"),
            node: reference("node"),
            warn_after: date(own, "warnafter").map_err(AuthError::new)?.filter(|t| *t != 0),
        })
    }
}

async fn validate_bound(
    claims: &Claims,
    raw: &Value,
    objects: &dyn ObjectGetter,
    now: Time,
    notes: &mut Notes,
) -> Result<User, AuthError> {
    claims.check_time(now).map_err(|e| {
        AuthError::new(match e {
            TimeError::Expired => "service account token has expired",
            TimeError::NotYetValid => "service account token is not valid yet",
            TimeError::IssuedInTheFuture => "service account token is issued in the future",
        })
    })?;
    let bound = BoundClaims::read(raw)?;
    let lookup = Lookup { objects, namespace: bound.namespace, now };
    lookup.account(bound.account).await?;
    if let Some(secret) = bound.secret {
        lookup.bound_object(Looked::Secret, secret).await?;
    }
    if let Some(pod) = bound.pod {
        lookup.bound_object(Looked::Pod, pod).await?;
    }
    // A pod's token names the node for information; the pod is what it lives and dies with.
    if let Some(node) = bound.node.filter(|_| bound.pod.is_none()) {
        lookup.bound_object(Looked::Node, node).await?;
    }
    if let Some(late) = bound.warn_after.map(|t| now.unix_seconds() - t).filter(|late| *late > 0) {
        let text = format!("subject: {}, seconds after warning threshold: {late}", claims.subject);
        notes.annotations.push(("authentication.k8s.io/stale-token", text));
    }
    Ok(user(&bound, claims))
}

struct Lookup<'a> {
    objects: &'a dyn ObjectGetter,
    namespace: &'a str,
    now: Time,
}

impl Lookup<'_> {
    async fn account(&self, account: Reference<'_>) -> Result<(), AuthError> {
        let (namespace, name) = (self.namespace, account.name);
        if name.is_empty() {
            return Err(AuthError::new("resource name may not be empty"));
        }
        if namespace.is_empty() {
            return Err(AuthError::new("an empty namespace may not be set when a resource name is provided"));
        }
        let object = self.objects.get(Looked::ServiceAccount, namespace, name).await?;
        let Some(object) = object else {
            return Err(AuthError::new(format!("serviceaccounts {} not found", quote(name))));
        };
        let uid = object.str_at(&["metadata", "uid"]);
        if uid != account.uid {
            return Err(AuthError::new(format!("service account UID ({uid}) does not match claim ({})", account.uid)));
        }
        if self.is_gone(&object) {
            return Err(AuthError::new(format!("service account {namespace}/{name} has been deleted")));
        }
        Ok(())
    }

    async fn bound_object(&self, kind: Looked, claimed: Reference<'_>) -> Result<(), AuthError> {
        let (word, namespace) = match kind {
            Looked::Secret => ("secret", self.namespace),
            Looked::Pod => ("pod", self.namespace),
            Looked::Node => ("node", ""),
            Looked::ServiceAccount => ("service account", self.namespace),
        };
        // Whatever the reason for not finding it, the client learns only that the token is of no use.
        let found = self.objects.get(kind, namespace, claimed.name).await.ok().flatten();
        let object = found.ok_or_else(|| AuthError::new(INVALIDATED))?;
        let uid = object.str_at(&["metadata", "uid"]);
        if uid != claimed.uid {
            return Err(AuthError::new(format!(
                "{word} UID ({uid}) does not match service account {word} ref claim ({})",
                claimed.uid
            )));
        }
        if self.is_gone(&object) { Err(AuthError::new(INVALIDATED)) } else { Ok(()) }
    }

    /// Deleted, and for long enough that all servers know.
    fn is_gone(&self, object: &Value) -> bool {
        let deleted = Time::parse(object.str_at(&["metadata", "deletionTimestamp"])).ok();
        deleted.is_some_and(|t| t.unix_seconds() < self.now.unix_seconds() - LEEWAY_SECONDS)
    }
}

fn user(bound: &BoundClaims<'_>, claims: &Claims) -> User {
    let mut extra: BTreeMap<Str, Vec<Str>> = BTreeMap::new();
    let mut add = |key: &str, value: &str| drop(extra.insert(key.into(), vec![value.into()]));
    if let Some(pod) = bound.pod.filter(|p| !p.name.is_empty() && !p.uid.is_empty()) {
        add(EXTRA_POD_NAME, pod.name);
        add(EXTRA_POD_UID, pod.uid);
    }
    if !claims.id.is_empty() {
        add(EXTRA_CREDENTIAL_ID, &format!("JTI={}", claims.id));
    }
    if let Some(node) = bound.node.filter(|n| !n.name.is_empty()) {
        add(EXTRA_NODE_NAME, node.name);
        if !node.uid.is_empty() {
            add(EXTRA_NODE_UID, node.uid);
        }
    }
    User {
        name: username(bound.namespace, bound.account.name),
        uid: bound.account.uid.into(),
        groups: groups(bound.namespace),
        extra,
    }
}

#[cfg(test)]
#[path = "authenticate_tests.rs"]
mod tests;
