//! Mode `Webhook`: another server is sent a SubjectAccessReview; its answers are kept for a while.

mod conditions;
mod key;
mod spec;

pub use conditions::{Conditions, Outcome};
pub use spec::review_spec;

use crate::authz::metrics::Observer;
use crate::error::AuthError;
use crate::expiring::ExpiringMap;
use crate::remote::ReviewClient;
use crate::traits::{Answer, Attributes, Authorizer, Decision, UserRules, Verdict};
use crate::user::User;
use key::cache_key;
use kubelith_meta::Value;
use kubelith_meta::text::quote;
use kubelith_meta::time::Clock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers that are kept.
const MAX_CACHED: usize = 8192;
/// Requests with more in them than this are not kept, so that clients cannot fill memory.
const MAX_CACHED_ATTRIBUTES: usize = 10_000;

/// Versions of authorization.k8s.io that a webhook may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessReviewVersion {
    V1,
    V1Beta1,
}

impl AccessReviewVersion {
    /// Reads `--authorization-webhook-version`.
    pub fn parse(version: &str) -> Result<AccessReviewVersion, String> {
        match version {
            "v1" => Ok(AccessReviewVersion::V1),
            "v1beta1" => Ok(AccessReviewVersion::V1Beta1),
            other => Err(format!(
                "unsupported webhook authorizer version {}, supported versions are \"v1\", \"v1beta1\"",
                quote(other)
            )),
        }
    }
}

pub struct WebhookPolicy {
    pub version: AccessReviewVersion,
    /// For how long a yes is kept; zero: not at all.
    pub authorized_ttl: Duration,
    /// For how long anything else is kept.
    pub unauthorized_ttl: Duration,
    /// What counts if the webhook cannot be asked: `Deny` or `NoOpinion`.
    pub on_error: Verdict,
    /// None: it is asked about everything.
    pub conditions: Conditions,
    /// Who hears what came of them, and of the reviews that were sent.
    pub observer: Option<Observer>,
}

pub struct WebhookAuthorizer {
    client: ReviewClient,
    policy: WebhookPolicy,
    clock: Arc<dyn Clock>,
    /// Held for a lookup or an insertion, never while the webhook is asked.
    cache: Mutex<ExpiringMap<[u8; 32], Decision>>,
}

impl WebhookAuthorizer {
    pub fn new(client: ReviewClient, policy: WebhookPolicy, clock: Arc<dyn Clock>) -> WebhookAuthorizer {
        WebhookAuthorizer { client, policy, clock, cache: Mutex::new(ExpiringMap::new(MAX_CACHED)) }
    }

    async fn ask(&self, attributes: &Attributes, key: [u8; 32]) -> Decision {
        let spec = review_spec(attributes, self.policy.version);
        let version = match self.policy.version {
            AccessReviewVersion::V1 => "authorization.k8s.io/v1",
            AccessReviewVersion::V1Beta1 => "authorization.k8s.io/v1beta1",
        };
        let review = Value::from([
            ("apiVersion", Value::from(version)),
            ("kind", "SubjectAccessReview".into()),
            ("metadata", Value::object()),
            ("spec", spec),
            ("status", Value::from([("allowed", false)])),
        ]);
        let status = match self.review(&review).await {
            Ok(status) => status,
            Err(e) => return self.failed(e),
        };
        let decision = decision_of(&status);
        let ttl = match status.get("allowed").and_then(Value::as_bool) {
            Some(true) => self.policy.authorized_ttl,
            _ => self.policy.unauthorized_ttl,
        };
        if size(attributes) < MAX_CACHED_ATTRIBUTES && !ttl.is_zero() {
            let mut cache = self.cache.lock().expect("no panic while held");
            cache.insert(key, decision.clone(), self.clock.now(), ttl);
        }
        decision
    }

    async fn review(&self, review: &Value) -> Result<Value, AuthError> {
        let Some(Observer { authorizer, metrics }) = &self.policy.observer else {
            return self.client.review(review, |_, _| {}).await;
        };
        let mut last = None;
        let tell = |outcome, took| {
            last = Some(outcome);
            metrics.asked(authorizer, outcome, took);
        };
        let answer = self.client.review(review, tell).await;
        if let (Err(_), Some(outcome), Verdict::NoOpinion) = (&answer, last, self.policy.on_error) {
            metrics.failed_open(authorizer, outcome);
        }
        answer
    }

    fn failed(&self, error: AuthError) -> Decision {
        Decision { verdict: self.policy.on_error, reason: "".into(), error: Some(error) }
    }
}

impl Authorizer for WebhookAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        match self.policy.conditions.hold(attributes, self.policy.observer.as_ref()) {
            Ok(true) => {}
            Ok(false) => return Answer::Ready(Decision::no_opinion("")),
            Err(e) => return Answer::Ready(self.failed(e)),
        }
        let key = cache_key(attributes);
        let kept = self.cache.lock().expect("no panic while held").get(&key, self.clock.now()).cloned();
        match kept {
            Some(decision) => Answer::Ready(decision),
            None => Answer::pending(self.ask(attributes, key)),
        }
    }

    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        let error = AuthError::new("webhook authorizer does not support user rule resolution");
        UserRules { incomplete: true, error: Some(error), ..UserRules::default() }
    }
}

fn decision_of(status: &Value) -> Decision {
    let is = |key: &str| status.get(key).and_then(Value::as_bool) == Some(true);
    let reason = status.str_at(&["reason"]).to_string();
    match (is("denied"), is("allowed")) {
        (true, true) => {
            Decision::deny(reason).with_error("webhook subject access review returned both allow and deny response")
        }
        (true, false) => Decision::deny(reason),
        (false, true) => Decision::allow(reason),
        (false, false) => Decision::no_opinion(reason),
    }
}

fn size(a: &Attributes) -> usize {
    [&a.namespace, &a.verb, &a.group, &a.version, &a.resource, &a.subresource, &a.name, &a.path]
        .iter()
        .map(|s| s.len())
        .sum()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
