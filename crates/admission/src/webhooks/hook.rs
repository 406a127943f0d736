//! One webhook of a configuration, read once.

use crate::expression::{Composition, Conditions, FailurePolicy};
use crate::matching::Selectors;
use crate::rules::{MatchPolicy, Rule};
use kubelith_auth::hook::{Hook as Client, Hooks};
use kubelith_cel::admission::Sees;
use kubelith_meta::{Str, Value};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the reference fills in, and so what every stored webhook has.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Hook {
    pub name: Str,
    /// Name of the configuration.
    pub configuration: Str,
    /// Tells it from all others, also after its configuration changed.
    pub uid: String,
    pub rules: Vec<Rule>,
    pub match_policy: MatchPolicy,
    pub failure_policy: FailurePolicy,
    pub selectors: Selectors,
    pub side_effects: SideEffects,
    pub timeout: Duration,
    /// The version of AdmissionReview that it gets: the first that is known.
    pub review: Option<ReviewVersion>,
    /// Whether it is asked again after others have changed the object.
    pub is_reinvoked: bool,
    conditions: Vec<Value>,
    compiled: OnceLock<(Composition, Conditions)>,
    client_config: Value,
    client: OnceLock<Result<Arc<dyn Client>, String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    pub const fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }
}

/// Whether a dry run may reach the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideEffects {
    NoneOnDryRun,
    Some,
    /// The configuration does not say.
    Unsaid,
}

impl Hook {
    pub fn read(configuration: &str, number: usize, hook: &Value) -> Hook {
        let name = Str::from(hook.str_at(&["name"]));
        let versions = hook.get("admissionReviewVersions").and_then(Value::as_array).unwrap_or(&[]);
        let timeout = hook.get("timeoutSeconds").and_then(Value::as_i64).and_then(|s| u64::try_from(s).ok());
        Hook {
            uid: format!("{configuration}/{name}/{number}"),
            name,
            configuration: configuration.into(),
            rules: Rule::list(hook, "rules"),
            match_policy: MatchPolicy::read(hook),
            failure_policy: FailurePolicy::read(hook),
            selectors: Selectors::read(hook),
            side_effects: match hook.str_at(&["sideEffects"]) {
                "None" | "NoneOnDryRun" => SideEffects::NoneOnDryRun,
                "" => SideEffects::Unsaid,
                _ => SideEffects::Some,
            },
            timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            review: versions.iter().find_map(|version| match version.as_str()? {
                "v1" => Some(ReviewVersion::V1),
                "v1beta1" => Some(ReviewVersion::V1beta1),
                _ => None,
            }),
            is_reinvoked: hook.str_at(&["reinvocationPolicy"]) == "IfNeeded",
            conditions: hook.get("matchConditions").and_then(Value::as_array).unwrap_or(&[]).to_vec(),
            compiled: OnceLock::new(),
            client_config: hook.get("clientConfig").cloned().unwrap_or_default(),
            client: OnceLock::new(),
        }
    }

    /// Compiled when they are first needed; none if there are none.
    pub fn conditions(&self) -> Option<&(Composition, Conditions)> {
        if self.conditions.is_empty() {
            return None;
        }
        Some(self.compiled.get_or_init(|| {
            let composition = Composition::new(Sees { params: false, authorizer: true });
            let of = |condition: &Value| composition.compile(condition.str_at(&["expression"]));
            let conditions = Conditions::of(self.conditions.iter().map(of).collect());
            (composition, conditions)
        }))
    }

    pub fn client(&self, hooks: &dyn Hooks) -> Result<&Arc<dyn Client>, &str> {
        self.client.get_or_init(|| hooks.hook(&self.client_config)).as_ref().map_err(String::as_str)
    }
}
