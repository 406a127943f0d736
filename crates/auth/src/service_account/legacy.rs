//! Tokens of the old kind, which live in Secrets and do not expire.

use super::{groups, split_username, username};
use crate::error::AuthError;
use crate::jwt::claims::Claims;
use crate::objects::{Looked, ObjectGetter};
use crate::traits::Notes;
use crate::user::User;
use aws_lc_rs::constant_time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubelith_meta::Value;
use kubelith_meta::text::quote;
use kubelith_meta::time::{Duration, Time};
use std::sync::Arc;

pub const INVALID_SINCE_LABEL: &str = "kubernetes.io/legacy-token-invalid-since";
pub const LAST_USED_LABEL: &str = "kubernetes.io/legacy-token-last-used";

/// How legacy tokens are checked.
pub enum LegacyTokens {
    /// By signature alone: `--service-account-lookup=false`.
    SignatureOnly,
    /// Against the Secret and the service account, noting the use.
    Lookup(Arc<dyn LegacyTokenUse>),
}

/// Keeps the label that says when a legacy token was last used.
pub trait LegacyTokenUse: Send + Sync {
    /// Sets [`LAST_USED_LABEL`] of the secret to `date` (`2006-01-02`), in the background; failures are logged.
    fn used(&self, secret: &Value, date: &str);
}

struct LegacyClaims<'a> {
    namespace: &'a str,
    secret: &'a str,
    account: &'a str,
    account_uid: &'a str,
}

impl<'a> LegacyClaims<'a> {
    fn read(claims: &Claims, raw: &'a Value) -> Result<LegacyClaims<'a>, AuthError> {
        if claims.subject.is_empty() {
            return Err(AuthError::new("sub claim is missing"));
        }
        let claim = |key: &str, name: &str| -> Result<&'a str, AuthError> {
            let value = raw.get(key).and_then(Value::as_str).filter(|v| !v.is_empty());
            value.ok_or_else(|| AuthError::new(format!("{name} claim is missing")))
        };
        let own = LegacyClaims {
            namespace: claim("kubernetes.io/serviceaccount/namespace", "namespace")?,
            secret: claim("kubernetes.io/serviceaccount/secret.name", "secretName")?,
            account: claim("kubernetes.io/serviceaccount/service-account.name", "serviceAccountName")?,
            account_uid: claim("kubernetes.io/serviceaccount/service-account.uid", "serviceAccountUID")?,
        };
        if split_username(&claims.subject) != Some((own.namespace, own.account)) {
            return Err(AuthError::new("sub claim is invalid"));
        }
        Ok(own)
    }
}

pub(super) async fn validate_legacy(
    how: &LegacyTokens,
    token: &str,
    claims: &Claims,
    raw: &Value,
    objects: &dyn ObjectGetter,
    now: Time,
    notes: &mut Notes,
) -> Result<User, AuthError> {
    let own = LegacyClaims::read(claims, raw)?;
    if let LegacyTokens::Lookup(usage) = how {
        let secret = current_secret(&own, token, objects).await?;
        let account = current_account(&own, objects).await?;
        let marked = check_mark(&own, &secret, notes);
        if marked.is_ok() {
            note_origin(&secret, &account, notes);
        }
        note_use(usage.as_ref(), &secret, now);
        marked?;
    }
    Ok(User {
        name: username(own.namespace, own.account),
        uid: own.account_uid.into(),
        groups: groups(own.namespace),
        ..User::default()
    })
}

async fn current_secret(
    own: &LegacyClaims<'_>,
    token: &str,
    objects: &dyn ObjectGetter,
) -> Result<Arc<Value>, AuthError> {
    let found = objects.get(Looked::Secret, own.namespace, own.secret).await.ok().flatten();
    let secret = found.filter(|s| !is_deleted(s)).ok_or_else(|| AuthError::new("Token has been invalidated"))?;
    let copy = STANDARD.decode(secret.str_at(&["data", "token"])).unwrap_or_default();
    constant_time::verify_slices_are_equal(&copy, token.as_bytes())
        .map_err(|_| AuthError::new("Token does not match server's copy"))?;
    Ok(secret)
}

async fn current_account(own: &LegacyClaims<'_>, objects: &dyn ObjectGetter) -> Result<Arc<Value>, AuthError> {
    let (namespace, name) = (own.namespace, own.account);
    let account = objects.get(Looked::ServiceAccount, namespace, name).await?;
    let account = account.ok_or_else(|| AuthError::new(format!("serviceaccounts {} not found", quote(name))))?;
    if is_deleted(&account) {
        return Err(AuthError::new(format!("ServiceAccount {namespace}/{name} has been deleted")));
    }
    let uid = account.str_at(&["metadata", "uid"]);
    if uid != own.account_uid {
        return Err(AuthError::new(format!("ServiceAccount UID ({uid}) does not match claim ({})", own.account_uid)));
    }
    Ok(account)
}

fn is_deleted(object: &Value) -> bool {
    !object.str_at(&["metadata", "deletionTimestamp"]).is_empty()
}

/// Refuses a token that the clean-up of unused ones has marked.
fn check_mark(own: &LegacyClaims<'_>, secret: &Value, notes: &mut Notes) -> Result<(), AuthError> {
    if secret.str_at(&["metadata", "labels", INVALID_SINCE_LABEL]).is_empty() {
        return Ok(());
    }
    let (namespace, name, account) = (own.namespace, own.secret, own.account);
    notes.annotations.push(("authentication.k8s.io/legacy-token-invalidated", format!("{name}/{namespace}")));
    Err(AuthError::new(format!(
        "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked invalid. \
         Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
         '{INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token"
    )))
}

/// Tells tokens that were made for every account once from those made by hand.
fn note_origin(secret: &Value, account: &Value, notes: &mut Notes) {
    let name = secret.str_at(&["metadata", "name"]).to_string();
    let listed = account.get("secrets").and_then(Value::as_array).unwrap_or_default();
    if listed.iter().any(|s| s.str_at(&["name"]) == name) {
        let advice = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
                      auto-generated secret-based tokens.";
        notes.warnings.push(advice.into());
        notes.annotations.push(("authentication.k8s.io/legacy-token-autogenerated-secret", name));
    } else {
        notes.annotations.push(("authentication.k8s.io/legacy-token-manual-secret", name));
    }
}

/// Once a day is enough; tomorrow's date is another server's, whose clock is ahead.
fn note_use(usage: &dyn LegacyTokenUse, secret: &Value, now: Time) {
    let day = |offset: i64| (now + Duration::from_secs(offset * 86_400)).rfc3339()[..10].to_string();
    let last = secret.str_at(&["metadata", "labels", LAST_USED_LABEL]);
    let today = day(0);
    if last != today && last != day(1) {
        usage.used(secret, &today);
    }
}
