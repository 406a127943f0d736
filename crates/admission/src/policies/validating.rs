//! ValidatingAdmissionPolicy: requests are refused, warned of or noted by expressions.

use super::params::namespace;
use super::parts::{Asked, Parts};
use super::policy::{Binding, Policy};
use super::source::Bound;
use crate::attributes::{Seen, is_exempt};
use crate::config::Config;
use crate::expression::{Asker, FailurePolicy, Inputs, Matched, OUT_OF_BUDGET, describe};
use crate::observe::Power;
use crate::plugin::{Plugin, Verdict};
use crate::rules::Versions;
use crate::versioned;
use kubelith_cel::Val;
use kubelith_codec::json;
use kubelith_meta::status::{Cause, Reason};
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::admission::Request;
use std::time::Instant;

/// What the expressions of a policy may cost for one parameter.
const BUDGET: u64 = 10_000_000;
/// Of a message that an expression makes, in bytes; longer ones are not used.
const MAX_MESSAGE: usize = 5 * 1024;
/// Of an audit annotation, in bytes; longer ones are cut.
const MAX_ANNOTATION: usize = 10 * 1024;
const FAILURE_KEY: &str = "validation.policy.admission.k8s.io/validation_failure";

pub struct ValidatingAdmissionPolicy(Parts);

impl ValidatingAdmissionPolicy {
    pub fn new(config: &Config) -> ValidatingAdmissionPolicy {
        ValidatingAdmissionPolicy(Parts::new(
            config,
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ))
    }
}

impl Plugin for ValidatingAdmissionPolicy {
    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        if is_exempt(request) {
            return Verdict::PASSED;
        }
        let bound = self.0.source.candidates(request);
        if bound.is_empty() {
            return Verdict::PASSED;
        }
        Verdict::pending(async move { self.judge(request, object, &bound).await })
    }
}

/// Why a request is refused.
struct Denial {
    policy: Str,
    binding: Option<Str>,
    message: String,
    reason: Str,
}

/// What came of one validation.
struct Failed {
    /// Its place among those of the policy.
    place: usize,
    message: String,
    reason: Str,
}

/// What came of one run of a policy.
#[derive(Default)]
struct Outcome {
    failed: Vec<Failed>,
    annotations: Vec<(Str, String)>,
    /// Annotations that failed.
    errors: Vec<String>,
}

impl ValidatingAdmissionPolicy {
    async fn judge(&self, request: Request<'_>, object: &Value, bound: &[Bound]) -> Result<(), Status> {
        let versions = Versions::of(request, &self.0.objects);
        let mut denials = Vec::new();
        for Bound { policy, bindings } in bound {
            let configured = |why: String, binding: Option<&Binding>| Denial {
                policy: policy.name.clone(),
                binding: binding.map(|b| b.name.clone()),
                message: match binding {
                    None => format!("failed to configure policy: {why}"),
                    Some(_) => format!("failed to configure binding: {why}"),
                },
                reason: "Invalid".into(),
            };
            let fails = policy.failure_policy == FailurePolicy::Fail;
            let asked = Asked { request, versions: &versions, object };
            let (seen, source) = match self.0.matching(policy, asked).await {
                Ok(None) => continue,
                Ok(Some(found)) => found,
                Err(why) => {
                    denials.extend(fails.then(|| configured(why, None)));
                    continue;
                }
            };
            let mut annotations: Vec<(Str, Vec<String>)> = Vec::new();
            for binding in bindings.iter() {
                let params = self.0.params(policy, binding, source.as_ref(), asked).await;
                let run = match params {
                    Ok(None) => continue,
                    Ok(Some(params)) => self.run(policy, request, seen, object, &params).await?,
                    Err(why) => {
                        denials.extend(fails.then(|| configured(why, Some(binding))));
                        continue;
                    }
                };
                for outcome in run {
                    act(request, policy, binding, outcome, &mut denials, &mut annotations);
                }
            }
            for (key, values) in annotations {
                request.call.annotate(format!("{}/{key}", policy.name), values.join(", "));
            }
        }
        match denials.into_iter().next() {
            None => Ok(()),
            Some(denial) => Err(refusal(request, object, denial)),
        }
    }

    /// Runs a policy once for each parameter.
    async fn run(
        &self,
        policy: &Policy,
        request: Request<'_>,
        seen: &Seen,
        object: &Value,
        params: &[Option<Value>],
    ) -> Result<Vec<Outcome>, Status> {
        if params.is_empty() {
            return Ok(Vec::new());
        }
        let converted = |value: Option<&Value>| value.filter(|v| !v.is_null() && !v.is_of(&seen.kind)).cloned();
        let mut made = [converted(Some(object)), converted(request.old)];
        for value in made.iter_mut().flatten() {
            let mut other = versioned::convert(request, std::mem::take(value), &seen.kind).await?;
            versioned::canonical(&mut other);
            *value = other;
        }
        let [new, old] = made;
        let namespace = namespace(&self.0.namespaces, request).await?;
        let asker = Asker::new(&self.0.authorizer, request);
        let mut described = describe(request, &seen.kind);
        described.set_at(&["resource", "group"], Value::String(seen.resource.group.clone()));
        described.set_at(&["resource", "version"], Value::String(seen.resource.version.clone()));
        let new = new.or_else(|| versioned::printed(Some(object)));
        let run = |params: &Option<Value>| {
            let inputs = Inputs {
                object: new.as_ref(),
                old: old.as_ref().or(request.old),
                namespace: namespace.as_ref(),
                request: &described,
                params: params.as_ref(),
                authorizer: Some(&asker),
                variables: &[],
            };
            self.evaluate(policy, request, &inputs)
        };
        Ok(params.iter().map(run).collect())
    }

    fn evaluate(&self, policy: &Policy, request: Request<'_>, inputs: &Inputs<'_>) -> Outcome {
        let expressions = policy.expressions();
        let mut outcome = Outcome::default();
        let mut budget = BUDGET;
        expressions.composition.with_variables(inputs, &mut budget, &mut |inputs, budget| {
            if !expressions.conditions.is_empty() && !self.holds(policy, request, inputs, &mut outcome) {
                return;
            }
            validate(policy, inputs, budget, &mut outcome);
        });
        outcome
    }

    /// Whether the match conditions hold. If that cannot be told, the outcome says so.
    fn holds(&self, policy: &Policy, request: Request<'_>, inputs: &Inputs<'_>, outcome: &mut Outcome) -> bool {
        let began = Instant::now();
        let checked = policy.expressions().conditions.check(inputs, policy.failure_policy);
        let (power, operation) = (Power::Validating, request.operation);
        self.0.observer.conditions_checked(&policy.name, "policy", power, operation, checked.failures, began.elapsed());
        match checked.matched {
            Matched::Yes => return true,
            Matched::No => {}
            Matched::Failed(message) => outcome.failed.push(Failed { place: 0, message, reason: "Invalid".into() }),
        }
        false
    }
}

fn validate(policy: &Policy, inputs: &Inputs<'_>, budget: &mut u64, outcome: &mut Outcome) {
    let fails = policy.failure_policy == FailurePolicy::Fail;
    let expressions = policy.expressions();
    let invalid = || Str::from("Invalid");
    let mut failed = Vec::new();
    for (place, validation) in expressions.validations.iter().enumerate() {
        match validation.expression.run(inputs, budget, |value| matches!(value, Val::Bool(true))) {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                failed.push(Failed { place, message: String::new(), reason: validation.reason.clone() });
            }
            Ok(Err(message)) if fails => failed.push(Failed { place, message, reason: invalid() }),
            Ok(Err(_)) => {}
            Err(message) => {
                outcome.failed = fails.then(|| Failed { place: 0, message, reason: invalid() }).into_iter().collect();
                return;
            }
        }
    }
    for failed in failed.iter_mut().filter(|f| f.message.is_empty()) {
        let validation = &expressions.validations[failed.place];
        let made = match &validation.message_expression {
            None => Ok(None),
            Some(expression) => {
                let inputs = Inputs { authorizer: None, ..*inputs };
                let made = expression.run(&inputs, budget, |value| value.as_str().map(|text| text.trim().to_owned()));
                made.map(|made| made.ok().flatten())
            }
        };
        failed.message = match made {
            Ok(Some(text)) if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') => text,
            Ok(_) => validation.message.clone(),
            Err(_) => format!("failed messageExpression: {OUT_OF_BUDGET}"),
        };
    }
    outcome.failed = failed;
    annotate(policy, inputs, fails, outcome);
}

fn annotate(policy: &Policy, inputs: &Inputs<'_>, fails: bool, outcome: &mut Outcome) {
    let mut budget = BUDGET;
    for (key, expression, source) in &policy.expressions().annotations {
        let made = expression.run(inputs, &mut budget, |value| match value {
            Val::Null => Ok(None),
            value => match value.as_str() {
                Some(text) => Ok(Some(text.trim().to_owned())),
                None => Err(format!(
                    "valueExpression '{source}' resulted in unsupported return type: {}. Return type must be either \
                     string or null.",
                    value.type_name()
                )),
            },
        });
        match made {
            Ok(Ok(Ok(Some(text)))) if !text.is_empty() => outcome.annotations.push((key.clone(), text)),
            Ok(Ok(Ok(_))) => {}
            Ok(Ok(Err(why))) => outcome.errors.push(why),
            Ok(Err(why)) if fails => outcome.errors.push(why),
            Ok(Err(_)) => {}
            Err(message) => {
                let failed = fails.then(|| Failed { place: 0, message, reason: "Invalid".into() });
                *outcome = Outcome { failed: failed.into_iter().collect(), ..Outcome::default() };
                return;
            }
        }
    }
}

/// Does what the binding says is to be done.
fn act(
    request: Request<'_>,
    policy: &Policy,
    binding: &Binding,
    outcome: Outcome,
    denials: &mut Vec<Denial>,
    annotations: &mut Vec<(Str, Vec<String>)>,
) {
    let denial = |message: String, reason: Str| Denial {
        policy: policy.name.clone(),
        binding: Some(binding.name.clone()),
        message,
        reason,
    };
    for Failed { place, message, reason } in outcome.failed {
        for action in &binding.actions {
            match action.as_str() {
                "Deny" => denials.push(denial(message.clone(), reason.clone())),
                "Audit" => request.call.annotate(FAILURE_KEY, failure(binding, place, &message)),
                "Warn" => request.call.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                    policy.name, binding.name
                )),
                _ => {}
            }
        }
    }
    for why in outcome.errors {
        denials.push(denial(why, "Invalid".into()));
    }
    for (key, mut text) in outcome.annotations {
        let mut end = text.len().min(MAX_ANNOTATION);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        match annotations.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) if values.contains(&text) => {}
            Some((_, values)) => values.push(text),
            None => annotations.push((key, vec![text])),
        }
    }
}

/// The annotation of the audit log for a failed validation.
fn failure(binding: &Binding, place: usize, message: &str) -> String {
    let mut out = b"[{\"message\":".to_vec();
    json::write_string(&mut out, message);
    out.extend_from_slice(b",\"policy\":");
    json::write_string(&mut out, &binding.policy);
    out.extend_from_slice(b",\"binding\":");
    json::write_string(&mut out, &binding.name);
    let actions: Vec<String> = binding.actions.iter().map(|action| format!("\"{action}\"")).collect();
    let rest = format!(",\"expressionIndex\":{place},\"validationActions\":[{}]}}]", actions.join(","));
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

fn refusal(request: Request<'_>, object: &Value, denial: Denial) -> Status {
    let Denial { policy, binding, message, reason } = denial;
    let message = match binding {
        Some(binding) => {
            format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}")
        }
        None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
    };
    let mut status = request.forbidden(object, &message);
    status.code = match reason.as_str() {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.reason = Reason::from(reason.as_str());
    status.details_mut().causes.push(Cause::new("", message, ""));
    status
}
