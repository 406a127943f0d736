//! ValidatingAdmissionPolicy: requests are refused, warned of or noted by expressions.

use super::params::namespace;
use super::parts::{Asked, Parts};
use super::policy::{Binding, Policy};
use super::source::Bound;
use crate::attributes::Seen;
use crate::config::Config;
use crate::expression::{Described, FailurePolicy, Inputs, Matched, OUT_OF_BUDGET};
use crate::manifests::{Manifests, Of};
use crate::observe::{CheckError, PolicyCheck, Power};
use crate::plugin::{Plugin, Verdict};
use crate::rules::Versions;
use crate::versioned;
use kubelith_cel::Val;
use kubelith_codec::json;
use kubelith_meta::call::Wait;
use kubelith_meta::status::{Cause, Reason};
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::admission::Request;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the expressions of a policy may cost for one parameter.
const BUDGET: u64 = 10_000_000;
/// Of a message that an expression makes, in bytes; longer ones are not used.
const MAX_MESSAGE: usize = 5 * 1024;
/// Of an audit annotation, in bytes; longer ones are cut.
const MAX_ANNOTATION: usize = 10 * 1024;
const FAILURE_KEY: &str = "validation.policy.admission.k8s.io/validation_failure";

pub struct ValidatingAdmissionPolicy(Parts);

impl ValidatingAdmissionPolicy {
    pub fn new(config: &Config, text: Option<&[u8]>) -> Result<ValidatingAdmissionPolicy, String> {
        let plurals = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
        Ok(ValidatingAdmissionPolicy(Parts::new(config, Of::ValidatingPolicies, plurals, text)?))
    }
}

impl Plugin for ValidatingAdmissionPolicy {
    fn manifests(&self) -> Option<Arc<Manifests>> {
        self.0.source.manifests.clone()
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        let bound = self.0.source.candidates(request);
        if bound.is_empty() {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            let began = Instant::now();
            let judged = self.judge(request, object, &bound).await;
            request.call.waited(Wait::Policies, began.elapsed());
            judged
        })
    }
}

/// Why a request is refused.
struct Denial {
    policy: Str,
    binding: Option<Str>,
    message: String,
    reason: Str,
}

/// A validation that does not hold, or of which that cannot be told.
struct Failed {
    /// Its place among those of the policy.
    place: usize,
    message: String,
    reason: Str,
    /// Not so if the failure policy passes over it.
    is_denied: bool,
    time: Duration,
}

/// What came of one run of a policy.
#[derive(Default)]
struct Outcome {
    failed: Vec<Failed>,
    annotations: Vec<(Str, String)>,
    /// Annotations that failed.
    errors: Vec<(String, Duration)>,
}

impl Outcome {
    /// Nothing but an error, of none of the validations.
    fn error(policy: &Policy, message: String) -> Outcome {
        let is_denied = policy.failure_policy == FailurePolicy::Fail;
        let failed = Failed { place: 0, message, reason: "Invalid".into(), is_denied, time: Duration::ZERO };
        Outcome { failed: vec![failed], ..Outcome::default() }
    }
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
                    self.act(request, (policy, binding), outcome, &mut denials, &mut annotations);
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
        // Conditions see the resource that was asked for.
        let (sent, described) = (Described::new(request, &seen.kind), Described::matched(request, seen));
        let new = new.map(Cow::Owned).or_else(|| versioned::shown(request, object));
        let run = |params: &Option<Value>| {
            let inputs = Inputs {
                object: new.as_deref(),
                old: old.as_ref().or(request.old),
                namespace: namespace.as_ref(),
                request: &described,
                params: params.as_ref(),
                authorizer: Some(&self.0.authorizer),
            };
            let held = self.holds(policy, request, &Inputs { namespace: None, request: &sent, ..inputs });
            match held {
                Matched::Yes => validate(policy, &inputs),
                Matched::No => Outcome::default(),
                Matched::Failed(why) => Outcome::error(policy, why),
            }
        };
        Ok(params.iter().map(run).collect())
    }

    fn holds(&self, policy: &Policy, request: Request<'_>, inputs: &Inputs<'_>) -> Matched {
        let expressions = policy.expressions();
        if expressions.conditions.is_empty() {
            return Matched::Yes;
        }
        let began = Instant::now();
        let run = expressions.composition.open(inputs);
        let checked = expressions.conditions.check(&run, policy.failure_policy);
        let (power, operation) = (Power::Validating, request.operation);
        self.0.observer.conditions_checked(&policy.name, "policy", power, operation, checked.failures, began.elapsed());
        checked.matched
    }
}

fn validate(policy: &Policy, inputs: &Inputs<'_>) -> Outcome {
    let fails = policy.failure_policy == FailurePolicy::Fail;
    let expressions = policy.expressions();
    let mut budget = BUDGET;
    let mut failed = Vec::new();
    let run = expressions.composition.open(inputs);
    let mut lap = Instant::now();
    for (place, validation) in expressions.validations.iter().enumerate() {
        let result = validation.expression.run(&run, &mut budget, |value| matches!(value, Val::Bool(true)));
        let now = Instant::now();
        let time = now - lap;
        lap = now;
        match result {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                let reason = validation.reason.clone();
                failed.push(Failed { place, message: String::new(), reason, is_denied: true, time });
            }
            Ok(Err(message)) => {
                failed.push(Failed { place, message, reason: "Invalid".into(), is_denied: fails, time });
            }
            Err(message) => return Outcome::error(policy, message),
        }
    }
    tell(policy, inputs, budget, &mut failed);
    annotate(policy, inputs, Outcome { failed, ..Outcome::default() })
}

/// Gives those that failed without a word their messages.
fn tell(policy: &Policy, inputs: &Inputs<'_>, mut budget: u64, failed: &mut Vec<Failed>) {
    let expressions = policy.expressions();
    let makers = expressions.validations.iter().filter(|v| v.message_expression.is_some()).count() as u64;
    // All messages are paid for, also those that nobody needs: these are made only where that could matter.
    let may_run_out = budget < makers.saturating_mul(expressions.composition.highest_cost());
    if failed.is_empty() && !may_run_out {
        return;
    }
    let inputs = Inputs { authorizer: None, ..*inputs };
    let run = expressions.composition.open_messages(&expressions.messages, &inputs);
    for (place, validation) in expressions.validations.iter().enumerate() {
        let wordless = failed.iter_mut().find(|f| f.place == place && f.message.is_empty());
        let made = match &validation.message_expression {
            Some(expression) if wordless.is_some() || may_run_out => {
                expression.run(&run, &mut budget, |value| value.as_str().map(|text| text.trim().to_owned()))
            }
            _ => Ok(Ok(None)),
        };
        let Ok(made) = made else { return run_out(policy, failed) };
        if let Some(wordless) = wordless {
            let usable = |text: &String| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
            wordless.message = made.ok().flatten().filter(usable).unwrap_or_else(|| validation.message.clone());
        }
    }
}

/// Where messages cost too much, all validations count as failed but those that failed with an error of their own.
fn run_out(policy: &Policy, failed: &mut Vec<Failed>) {
    let is_denied = policy.failure_policy == FailurePolicy::Fail;
    let of = |place: usize| {
        let message = format!("failed messageExpression: {OUT_OF_BUDGET}");
        Failed { place, message, reason: "Invalid".into(), is_denied, time: Duration::ZERO }
    };
    let had_error = |f: &Failed| f.message.starts_with("expression '") || f.message.starts_with("compilation error");
    failed.retain(had_error);
    for place in 0..policy.expressions().validations.len() {
        if !failed.iter().any(|f| f.place == place) {
            failed.push(of(place));
        }
    }
    failed.sort_by_key(|f| f.place);
}

/// Makes the audit annotations, which cannot ask the authorizer either.
fn annotate(policy: &Policy, inputs: &Inputs<'_>, mut outcome: Outcome) -> Outcome {
    let expressions = policy.expressions();
    if expressions.annotations.is_empty() {
        return outcome;
    }
    let fails = policy.failure_policy == FailurePolicy::Fail;
    let mut budget = BUDGET;
    let inputs = Inputs { authorizer: None, ..*inputs };
    let run = expressions.composition.open(&inputs);
    for (key, expression, source) in &expressions.annotations {
        let began = Instant::now();
        let made = expression.run(&run, &mut budget, |value| match value {
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
            Ok(Ok(Err(why))) => outcome.errors.push((why, began.elapsed())),
            Ok(Err(why)) if fails => outcome.errors.push((why, began.elapsed())),
            Ok(Err(_)) => {}
            Err(message) => return Outcome::error(policy, message),
        }
    }
    outcome
}

impl ValidatingAdmissionPolicy {
    /// Does what the binding says is to be done.
    fn act(
        &self,
        request: Request<'_>,
        (policy, binding): (&Policy, &Binding),
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
        let count = |action: &'static str, message: &str, time: Duration| {
            let (policy, binding, error) = (&policy.name, &binding.name, CheckError::of(message));
            self.0.observer.policy_checked(PolicyCheck {
                power: Power::Validating,
                policy,
                binding,
                error,
                action,
                time,
                why: message,
            });
        };
        for Failed { place, message, reason, is_denied, time } in outcome.failed {
            if !is_denied {
                count("allow", &message, time);
                continue;
            }
            for action in &binding.actions {
                match action.as_str() {
                    "Deny" => {
                        denials.push(denial(message.clone(), reason.clone()));
                        count("deny", &message, time);
                    }
                    "Audit" => {
                        request.call.annotate(FAILURE_KEY, failure(binding, place, &message));
                        count("audit", &message, time);
                    }
                    "Warn" => {
                        request.call.warn(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                            policy.name, binding.name
                        ));
                        count("warn", &message, time);
                    }
                    _ => {}
                }
            }
        }
        for (why, time) in outcome.errors {
            count("deny", &why, time);
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
