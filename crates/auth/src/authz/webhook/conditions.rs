//! Conditions that choose the requests a webhook is asked about.

use super::spec::requirement;
use crate::authz::metrics::Observer;
use crate::error::AuthError;
use crate::expression::Expression;
use crate::traits::Attributes;
use kubelith_meta::{Map, Str, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Expressions over the review that the webhook would get; all must be true.
#[derive(Clone, Default)]
pub struct Conditions(pub Vec<(Str, Arc<dyn Expression>)>);

impl Conditions {
    /// False: the webhook has no opinion. An error, if no condition is false, counts as its failure.
    pub fn hold(&self, attributes: &Attributes, observer: Option<&Observer>) -> Result<bool, AuthError> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let began = Instant::now();
        let mut errors = Vec::new();
        let holds = self.none_is_false(attributes, &mut errors);
        if let Some(observer) = observer {
            let outcome = Outcome { took: began.elapsed(), failed: !errors.is_empty(), excluded: !holds };
            observer.metrics.conditions_evaluated(&observer.authorizer, outcome);
        }
        if !holds {
            return Ok(false);
        }
        AuthError::aggregate(errors).map_or(Ok(true), Err)
    }

    fn none_is_false(&self, attributes: &Attributes, errors: &mut Vec<AuthError>) -> bool {
        let request = request(attributes);
        for (text, expression) in &self.0 {
            let wrong = |e: &str| AuthError::new(format!("cel evaluation error: expression '{text}' {e}"));
            match expression.evaluate(&request) {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => return false,
                Ok(_) => errors.push(wrong("eval result type should be bool")),
                Err(e) => errors.push(wrong(&format!("resulted in error: {e}"))),
            }
        }
        true
    }
}

/// What came of the conditions for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub took: Duration,
    /// One of them could not be evaluated.
    pub failed: bool,
    /// One of them is false: the webhook is not asked.
    pub excluded: bool,
}

/// The review's spec as expressions see it: what is empty is there all the same.
fn request(a: &Attributes) -> Value {
    let user = &a.user;
    let mut request = Map::from_iter([
        ("extra", Value::Object(user.extra.iter().map(|(k, v)| (k.clone(), v.clone())).collect())),
        ("groups", user.groups.clone().into()),
        ("uid", user.uid.clone().into()),
        ("user", user.name.clone().into()),
    ]);
    if a.resource_request {
        let words = [
            ("group", &a.group),
            ("name", &a.name),
            ("namespace", &a.namespace),
            ("resource", &a.resource),
            ("subresource", &a.subresource),
            ("verb", &a.verb),
            ("version", &a.version),
        ];
        let mut resource: Map = words.into_iter().map(|(key, word)| (key, word.clone())).collect();
        for (key, selector) in [("fieldSelector", &a.field_selector), ("labelSelector", &a.label_selector)] {
            let requirements: Vec<Value> = selector.requirements.iter().filter_map(requirement).collect();
            if !requirements.is_empty() {
                resource.insert(key, Value::from([("requirements", Value::Array(requirements))]));
            }
        }
        request.insert("resourceAttributes", resource);
    } else {
        let path = Value::from([("path", a.path.clone()), ("verb", a.verb.clone())]);
        request.insert("nonResourceAttributes", path);
    }
    Value::Object(request)
}
