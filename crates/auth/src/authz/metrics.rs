//! Who hears what authorizers do.

use super::webhook::Outcome;
use crate::remote::TryOutcome;
use crate::stats::Count;
use crate::traits::{Answer, Attributes, Authorizer, Decision, UserRules, Verdict};
use crate::user::User;
use kubelith_meta::Str;
use std::sync::Arc;
use std::time::Duration;

pub trait AuthorizerMetrics: Send + Sync {
    /// The match conditions of a webhook were evaluated for a request.
    fn conditions_evaluated(&self, authorizer: &str, outcome: Outcome);

    /// A webhook was sent a review, and answered or did not.
    fn asked(&self, authorizer: &str, outcome: TryOutcome, took: Duration);

    /// A webhook that could not be asked was passed over.
    fn failed_open(&self, authorizer: &str, outcome: TryOutcome);

    /// Where the decisions of an authorizer are counted; the same for the same type and name, also after a reload.
    fn decisions(&self, kind: &str, name: &str) -> Arc<DecisionCounts>;
}

/// The webhook whose doings are told.
#[derive(Clone)]
pub struct Observer {
    pub authorizer: Str,
    pub metrics: Arc<dyn AuthorizerMetrics>,
}

/// Decisions that end the search for one.
#[derive(Debug, Default)]
pub struct DecisionCounts {
    pub allowed: Count,
    pub denied: Count,
}

/// Counts the decisions of `inner`. An authorizer without an opinion decides nothing.
pub struct Counted {
    pub inner: Arc<dyn Authorizer>,
    pub counts: Arc<DecisionCounts>,
}

impl Counted {
    fn count(&self, decision: &Decision) {
        match decision.verdict {
            Verdict::Allow => self.counts.allowed.add(),
            Verdict::Deny => self.counts.denied.add(),
            Verdict::NoOpinion => {}
        }
    }
}

impl Authorizer for Counted {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        match self.inner.authorize(attributes) {
            Answer::Ready(decision) => {
                self.count(&decision);
                Answer::Ready(decision)
            }
            Answer::Pending(later) => Answer::pending(async move {
                let decision = later.await;
                self.count(&decision);
                decision
            }),
        }
    }

    fn rules_for(&self, user: &User, namespace: &str) -> UserRules {
        self.inner.rules_for(user, namespace)
    }
}
