//! Bootstrap tokens `<id>.<secret>` of joining nodes, kept in Secrets of kube-system.

use crate::error::AuthError;
use crate::objects::{Looked, ObjectGetter};
use crate::traits::{Answer, AuthResponse, Authentication, TokenAuthenticator};
use crate::user::User;
use aws_lc_rs::constant_time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubelith_meta::time::{Clock, Time};
use kubelith_meta::{Str, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const DEFAULT_GROUP: &str = "system:bootstrappers";

pub struct BootstrapToken {
    objects: Arc<dyn ObjectGetter>,
    clock: Arc<dyn Clock>,
}

impl BootstrapToken {
    pub fn new(objects: Arc<dyn ObjectGetter>, clock: Arc<dyn Clock>) -> BootstrapToken {
        BootstrapToken { objects, clock }
    }
}

impl TokenAuthenticator for BootstrapToken {
    fn authenticate_token<'a>(&'a self, token: &'a str, _audiences: &'a [Str]) -> Answer<'a, Authentication> {
        let Some((id, secret)) = split(token) else { return Answer::Ready(Ok(None)) };
        Answer::pending(async move {
            let name = format!("bootstrap-token-{id}");
            let object = self.objects.get(Looked::Secret, "kube-system", &name).await?;
            Ok(object.and_then(|object| accept(&object, id, secret, self.clock.now())))
        })
    }
}

/// Six and sixteen of `[a-z0-9]`, a dot between.
fn split(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let plain = |s: &str| s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret)).then_some((id, secret))
}

/// A token that does not fit its Secret is unknown rather than refused: another authenticator may know it.
fn accept(object: &Value, id: &str, secret: &str, now: Time) -> Option<AuthResponse> {
    let reject = |why: &str| {
        let name = object.str_at(&["metadata", "name"]);
        tracing::debug!("Bootstrap secret kube-system/{name} matching bearer token {why}");
        None
    };
    if object.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null()) {
        return reject("is deleted and awaiting removal");
    }
    if object.str_at(&["type"]) != SECRET_TYPE || object.at(&["data"]).is_none_or(Value::is_null) {
        return reject("has invalid type, expected bootstrap.kubernetes.io/token.");
    }
    let data = |key: &str| STANDARD.decode(object.str_at(&["data", key])).unwrap_or_default();
    if constant_time::verify_slices_are_equal(&data("token-secret"), secret.as_bytes()).is_err() {
        return reject("has invalid value for key token-secret.");
    }
    if data("token-id") != id.as_bytes() {
        return reject("has invalid value for key token-id.");
    }
    if expired(&data("expiration"), now) {
        return reject("is expired or has an unparseable expiration.");
    }
    if data("usage-bootstrap-authentication") != b"true" {
        return reject("not marked usage-bootstrap-authentication=true.");
    }
    let Ok(groups) = groups(&data("auth-extra-groups")) else {
        return reject("has invalid value for key auth-extra-groups.");
    };
    Some(AuthResponse::user(User { groups, ..User::named(format!("system:bootstrap:{id}")) }))
}

fn expired(expiration: &[u8], now: Time) -> bool {
    if expiration.is_empty() {
        return false;
    }
    let at = std::str::from_utf8(expiration).ok().and_then(|text| Time::parse(text).ok());
    at.is_none_or(|at| at <= now)
}

fn groups(extra: &[u8]) -> Result<Vec<Str>, AuthError> {
    let mut groups = BTreeSet::from([Str::from(DEFAULT_GROUP)]);
    let extra = std::str::from_utf8(extra).map_err(|_| AuthError::new("not text"))?;
    if !extra.is_empty() {
        for group in extra.split(',') {
            if !is_bootstrap_group(group) {
                return Err(AuthError::new(format!("bootstrap group {group:?} is invalid")));
            }
            groups.insert(group.into());
        }
    }
    Ok(groups.into_iter().collect())
}

/// `system:bootstrappers:` and 1 to 256 of `[a-z0-9:-]`, the last of `[a-z0-9]`.
fn is_bootstrap_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix("system:bootstrappers:") else { return false };
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    rest.len() <= 256
        && rest.bytes().all(|b| alphanumeric(b) || b == b':' || b == b'-')
        && rest.bytes().last().is_some_and(alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::testing::Objects;
    use crate::testing::{block_on, clock_at};

    fn secret(change: &[(&str, &str)]) -> Value {
        let mut data = vec![
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            ("expiration", "2030-01-01T00:00:00Z"),
        ];
        let metadata = Value::from([("name", "bootstrap-token-abcdef"), ("namespace", "kube-system")]);
        let mut object = Value::from([("metadata", metadata), ("type", SECRET_TYPE.into())]);
        for (key, value) in change {
            match *key {
                "type" => object.set_at(&["type"], (*value).into()),
                "deletionTimestamp" => object.set_at(&["metadata", "deletionTimestamp"], (*value).into()),
                key => {
                    data.retain(|(k, _)| *k != key);
                    data.push((key, value));
                }
            }
        }
        for (key, value) in data {
            object.set_at(&["data", key], STANDARD.encode(value).into());
        }
        object
    }

    #[test]
    fn secrets_that_do_not_fit_are_ignored() {
        let good = "abcdef.0123456789abcdef";
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a [&'a str]>);
        let cases: [Case<'_>; 13] = [
            (good, &[], Some(&["system:bootstrappers"])),
            (
                good,
                &[("auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a")],
                Some(&["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b"]),
            ),
            (good, &[("auth-extra-groups", "system:masters")], None),
            (good, &[("auth-extra-groups", "system:bootstrappers:a,system:masters")], None),
            (good, &[("token-secret", "0123456789abcdeX")], None),
            (good, &[("token-secret", "")], None),
            (good, &[("token-id", "bcdefg")], None),
            (good, &[("expiration", "2020-01-01T00:00:00Z")], None),
            (good, &[("expiration", "soon")], None),
            (good, &[("usage-bootstrap-authentication", "yes")], None),
            (good, &[("type", "Opaque")], None),
            (good, &[("deletionTimestamp", "2025-01-01T00:00:00Z")], None),
            ("abcdef.0123456789ABCDEF", &[], None),
        ];
        for (token, change, want) in cases {
            let objects = Objects::default();
            objects.put(Looked::Secret, secret(change));
            let clock = clock_at(1_750_000_000);
            let tokens = BootstrapToken::new(Arc::new(objects), clock);
            let got = block_on(tokens.authenticate_token(token, &[]).into_future()).unwrap();
            let want = want.map(|g| ("system:bootstrap:abcdef".to_string(), g.join(" ")));
            assert_eq!(got.map(|r| (r.user.name.to_string(), r.user.groups.join(" "))), want, "{token} {change:?}");
        }
    }
}
