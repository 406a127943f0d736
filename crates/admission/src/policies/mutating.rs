//! MutatingAdmissionPolicy: objects are changed by what expressions make, merged as server-side apply merges or patched.

use super::params::namespace;
use super::parts::{Asked, Parts};
use super::policy::{Binding, Mutation, Policy};
use super::source::Bound;
use crate::attributes::Seen;
use crate::config::Config;
use crate::expression::{Described, FailurePolicy, Inputs, Matched, Namespace};
use crate::manifests::{Manifests, Of};
use crate::observe::{CheckError, PolicyCheck, Power};
use crate::plugin::{Memory, Plugin, Round, Verdict};
use crate::rules::Versions;
use crate::versioned::{self, Changing};
use crate::webhooks::keep_owners;
use kubelith_cel::Val;
use kubelith_codec::json::{self, Strictness};
use kubelith_merge::PatchError;
use kubelith_merge::json_patch::{Checking, JsonPatch, MAX_COPIED_BYTES};
use kubelith_merge::typed::{Duplicates, Type};
use kubelith_meta::call::Wait;
use kubelith_meta::status::{Cause, Reason};
use kubelith_meta::text::quote;
use kubelith_meta::{GroupVersionKind, Status, Str, Value};
use kubelith_registry::admission::Request;
use kubelith_schema::TypedSchema;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the expressions of one mutation may cost.
const BUDGET: u64 = 10_000_000;
const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

pub struct MutatingAdmissionPolicy(Parts);

impl MutatingAdmissionPolicy {
    pub fn new(config: &Config, text: Option<&[u8]>) -> Result<MutatingAdmissionPolicy, String> {
        let plurals = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
        Ok(MutatingAdmissionPolicy(Parts::new(config, Of::MutatingPolicies, plurals, text)?))
    }
}

impl Plugin for MutatingAdmissionPolicy {
    fn manifests(&self) -> Option<Arc<Manifests>> {
        self.0.source.manifests.clone()
    }

    fn admit_in<'a>(&'a self, request: Request<'a>, object: &'a mut Value, round: &'a Round) -> Verdict<'a> {
        let bound = self.0.source.candidates(request);
        if bound.is_empty() {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            let mut memory = round.policies().take().unwrap_or_default();
            if round.is_second() && memory.left.as_ref() != Some(&*object) {
                memory.changed();
            }
            let owners = object.at(&MANAGED_FIELDS).cloned();
            let done = self.change(request, object, &bound, round, &mut memory).await;
            if done.is_ok() {
                keep_owners(request, object, owners);
                // Webhooks come after policies, and may ask for another round.
                if !round.is_second() {
                    memory.left = Some(object.clone());
                }
            }
            *round.policies() = Some(memory);
            done
        })
    }
}

/// Why a request may have to be refused.
struct PolicyError {
    message: String,
    policy: FailurePolicy,
    /// That of a refusal, if none is given.
    reason: Option<&'static str>,
}

/// A policy with a binding and a parameter.
struct Invocation<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    param: Option<Value>,
    seen: &'a Seen,
}

impl Invocation<'_> {
    fn key(&self) -> String {
        let of = |key: &str| self.param.as_ref().map_or("", |p| p.str_at(&["metadata", key])).to_owned();
        format!("{}/{}/{}/{}", self.policy.name, self.binding.name, of("namespace"), of("name"))
    }

    fn error(&self, why: &str) -> PolicyError {
        let (policy, binding) = (&self.policy.name, &self.binding.name);
        PolicyError {
            message: format!("policy '{policy}' with binding '{binding}' denied request: {why}"),
            policy: self.policy.failure_policy,
            reason: Some("Invalid"),
        }
    }
}

/// Why a mutation did not happen.
enum Failure {
    /// The failure policy decides.
    Policy(String),
    Status(Status),
}

impl MutatingAdmissionPolicy {
    async fn change(
        &self,
        request: Request<'_>,
        object: &mut Value,
        bound: &[Bound],
        round: &Round,
        memory: &mut Memory,
    ) -> Result<(), Status> {
        let versions = Versions::of(request, &self.0.objects);
        let mut errors = Vec::new();
        let invocations = self.invocations(request, object, bound, &versions, &mut errors).await;
        if !invocations.is_empty() {
            let namespace = namespace(&self.0.namespaces, request).await?;
            let mut changing = Changing::new(request, object);
            let mut is_touched = false;
            for invocation in &invocations {
                let context = Context { request, namespace: namespace.as_ref(), round };
                is_touched |= self.invoke(&context, invocation, &mut changing, memory, &mut errors).await?;
            }
            changing.settle().await?;
            if is_touched {
                // Also the last one, and one that is alone, runs again after what it did itself.
                memory.changed();
                round.repeat();
            }
        }
        errors.retain(|error| error.policy == FailurePolicy::Fail);
        refusal(request, object, errors)
    }

    /// What is to be run, with all parameters.
    async fn invocations<'b>(
        &self,
        request: Request<'_>,
        object: &Value,
        bound: &'b [Bound],
        versions: &'b Versions<'_>,
        errors: &mut Vec<PolicyError>,
    ) -> Vec<Invocation<'b>> {
        let mut found = Vec::new();
        for Bound { policy, bindings } in bound {
            let misconfigured = |why: &str| PolicyError {
                message: format!("policy {} denied request: failed to configure policy: {why}", quote(&policy.name)),
                policy: policy.failure_policy,
                reason: None,
            };
            let asked = Asked { request, versions, object };
            let (seen, source) = match self.0.matching(policy, asked).await {
                Ok(None) => continue,
                Ok(Some(found)) => found,
                Err(why) => {
                    errors.push(misconfigured(&why));
                    continue;
                }
            };
            for binding in bindings.iter() {
                let params = self.0.params(policy, binding, source.as_ref(), asked).await;
                match params {
                    Ok(None) => {}
                    Ok(Some(params)) => {
                        found.extend(params.into_iter().map(|param| Invocation { policy, binding, param, seen }));
                    }
                    Err(why) => errors.push(PolicyError {
                        message: format!(
                            "policy '{}' with binding '{}' denied request: failed to configure binding: {why}",
                            policy.name, binding.name
                        ),
                        policy: policy.failure_policy,
                        reason: None,
                    }),
                }
            }
        }
        found
    }

    /// Runs the mutations of one invocation in order. Whether any of them took place.
    async fn invoke(
        &self,
        context: &Context<'_>,
        invocation: &Invocation<'_>,
        changing: &mut Changing<'_>,
        memory: &mut Memory,
        errors: &mut Vec<PolicyError>,
    ) -> Result<bool, Status> {
        let Invocation { policy, seen, .. } = invocation;
        changing.bring_to(&seen.kind).await?;
        let expressions = policy.expressions();
        if !expressions.conditions.is_empty() {
            match self.holds(context, invocation, changing) {
                Matched::Yes => {}
                Matched::No => return Ok(false),
                Matched::Failed(why) => {
                    errors.push(invocation.error(&why));
                    return Ok(false);
                }
            }
        }
        let key = invocation.key();
        if context.round.is_second() && !memory.again.contains(&key) {
            return Ok(false);
        }
        let (mut changed, mut is_touched) = (false, false);
        for mutation in &expressions.mutations {
            if changing.object().is_null() {
                continue;
            }
            let began = Instant::now();
            let mutated = self.mutated(context, invocation, changing, mutation);
            let time = began.elapsed();
            context.request.call.waited(Wait::Policies, time);
            self.count(invocation, &mutated, time);
            match mutated {
                Ok(None) => is_touched = true,
                Ok(Some(made)) => {
                    is_touched = true;
                    changed |= Some(&made) != versioned::printed(Some(changing.object())).as_ref();
                    changing.replace(made);
                }
                Err(Failure::Policy(why)) => errors.push(invocation.error(&why)),
                Err(Failure::Status(status)) => return Err(status),
            }
        }
        if changed {
            memory.changed();
            context.round.repeat();
        }
        if policy.is_reinvoked {
            memory.waiting.insert(key);
        }
        Ok(is_touched)
    }

    fn count(&self, invocation: &Invocation<'_>, mutated: &Result<Option<Value>, Failure>, time: Duration) {
        let why = match mutated {
            Ok(_) => "",
            Err(Failure::Policy(why)) => why,
            Err(Failure::Status(status)) => &status.message,
        };
        let error = if mutated.is_ok() { CheckError::None } else { CheckError::of(why) };
        let (policy, binding) = (&invocation.policy.name, &invocation.binding.name);
        let action = if mutated.is_ok() { "allow" } else { "deny" };
        self.0.observer.policy_checked(PolicyCheck {
            power: Power::Mutating,
            policy,
            binding,
            error,
            action,
            time,
            why,
        });
    }

    fn holds(&self, context: &Context<'_>, invocation: &Invocation<'_>, changing: &Changing<'_>) -> Matched {
        let policy = invocation.policy;
        let began = Instant::now();
        let printed = versioned::printed(Some(changing.object()));
        let described = Described::new(context.request, &invocation.seen.kind);
        let inputs = Inputs {
            object: printed.as_ref(),
            old: changing.old(),
            namespace: None,
            request: &described,
            params: invocation.param.as_ref(),
            authorizer: Some(&self.0.authorizer),
        };
        let run = policy.expressions().composition.open(&inputs);
        let outcome = policy.expressions().conditions.check(&run, policy.failure_policy);
        let operation = context.request.operation;
        // The reference counts conditions of both kinds of policies as those of validating ones.
        let power = Power::Validating;
        self.0.observer.conditions_checked(&policy.name, "policy", power, operation, outcome.failures, began.elapsed());
        outcome.matched
    }

    /// What the expression of a mutation makes.
    fn made(
        &self,
        context: &Context<'_>,
        invocation: &Invocation<'_>,
        object: &Value,
        old: Option<&Value>,
        mutation: &Mutation,
    ) -> Result<Value, String> {
        let described = Described::matched(context.request, invocation.seen);
        let inputs = Inputs {
            object: Some(object),
            old,
            namespace: context.namespace,
            request: &described,
            params: invocation.param.as_ref(),
            authorizer: Some(&self.0.authorizer),
        };
        let run = invocation.policy.expressions().composition.open(&inputs);
        let mut budget = BUDGET;
        match mutation {
            Mutation::Apply(expression) => expression.run(&run, &mut budget, configuration),
            Mutation::JsonPatch(expression) => expression.run(&run, &mut budget, operations),
        }
        .and_then(|made| made)
        .and_then(|made| made)
    }

    /// What a mutation makes of the object; `None` if it leaves it alone.
    fn mutated(
        &self,
        context: &Context<'_>,
        invocation: &Invocation<'_>,
        changing: &Changing<'_>,
        mutation: &Mutation,
    ) -> Result<Option<Value>, Failure> {
        let object = &versioned::printed(Some(changing.object())).unwrap_or_default();
        let made = self.made(context, invocation, object, changing.old(), mutation).map_err(Failure::Policy)?;
        let (request, kind) = (context.request, &invocation.seen.kind);
        let mut result = match mutation {
            Mutation::Apply(_) => {
                let merged = apply(request, object, made, kind);
                let merged = merged.map_err(|why| Failure::Policy(format!("error applying patch: {why}")))?;
                versioned::decode(request, merged, kind, Strictness::Lenient).map_err(Failure::Policy)?
            }
            Mutation::JsonPatch(_) => {
                let Some(patched) = patch(object, made)? else { return Ok(None) };
                let decoded = versioned::decode(request, patched, kind, Strictness::Report);
                decoded.map_err(|why| Failure::Status(Status::internal_error(why)))?
            }
        };
        versioned::complete(request, &mut result).map_err(|why| Failure::Status(Status::unknown(why)))?;
        Ok(Some(result))
    }
}

/// What one round of a request is about.
struct Context<'a> {
    request: Request<'a>,
    namespace: Option<&'a Namespace>,
    round: &'a Round,
}

/// The object that is to be merged.
fn configuration(value: &Val<'_>) -> Result<Value, String> {
    let Val::Object(object) = value else {
        return Err(format!("unsupported return type from ApplyConfiguration expression: {}", value.type_name()));
    };
    if let Some(misplaced) = joined(object.misplaced_types()) {
        return Err(format!("type mismatch: {misplaced}"));
    }
    object.to_json()
}

/// The list of operations of a JSON patch.
fn operations(value: &Val<'_>) -> Result<Value, String> {
    let Some(list) = value.as_list() else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::new();
    for item in list.iter() {
        let item = item.map_err(|e| e.message().to_owned())?;
        let Val::Patch(patch) = &item else {
            return Err("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch".to_owned());
        };
        let mut operation = Value::from([("op", &*patch.op), ("path", &*patch.path)]);
        if !patch.from.is_empty() {
            operation.set_at(&["from"], (&*patch.from).into());
        }
        if let Some(value) = &patch.value {
            if let Val::Object(object) = value
                && let Some(misplaced) = joined(object.misplaced_types())
            {
                return Err(format!("type mismatch: {misplaced}"));
            }
            let json = value.to_json().map_err(|why| {
                format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
            })?;
            operation.set_at(&["value"], json);
        }
        operations.push(operation);
    }
    Ok(Value::Array(operations))
}

/// Several problems on lines of their own.
fn joined(problems: Vec<String>) -> Option<String> {
    (!problems.is_empty()).then(|| problems.join("\n"))
}

/// The type by which objects are merged.
fn schema(request: Request<'_>, kind: &GroupVersionKind) -> Option<TypedSchema> {
    let own = request.resource.filter(|r| r.descriptor.group == kind.group && r.descriptor.kind == kind.kind);
    own.and_then(|r| r.descriptor.version(&kind.version))
        .map(|version| version.schema.clone())
        .or_else(|| kubelith_catalog::builtin().kind_schema(kind))
}

fn apply(
    request: Request<'_>,
    object: &Value,
    mut configuration: Value,
    kind: &GroupVersionKind,
) -> Result<Value, String> {
    let Some(schema) = schema(request, kind) else { return Err("type converter must not be nil".to_owned()) };
    configuration.set_at(&["apiVersion"], kind.api_version().into());
    configuration.set_at(&["kind"], Value::String(kind.kind.clone()));
    let ty = Type::of(&schema);
    ty.validate(&configuration, Duplicates::Refused)
        .map_err(|e| format!("failed to convert patch object to typed object: {e}"))?;
    let atomics = ty.atomics(&configuration);
    if !atomics.is_empty() {
        let which = atomics.join(", ");
        return Err(format!("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {which}"));
    }
    let mut live = object.clone();
    live.unseal();
    ty.merge(&live, &configuration).map_err(|e| format!("failed to merge patch: {e}"))
}

/// The object with a patch; `None` if a test of the patch fails.
fn patch(object: &Value, operations: Value) -> Result<Option<Value>, Failure> {
    let failed = |e: PatchError| Failure::Policy(format!("JSON Patch: {e}"));
    let (patch, _) = JsonPatch::decode(operations, Checking::Ignore).map_err(failed)?;
    let mut patched = object.clone();
    patched.unseal();
    json::unfold_fields(&mut patched);
    match patch.apply(&mut patched, MAX_COPIED_BYTES) {
        Ok(()) => Ok(Some(patched)),
        Err(e) if e.to_string().ends_with(": test failed") => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

fn refusal(request: Request<'_>, object: &Value, errors: Vec<PolicyError>) -> Result<(), Status> {
    let Some(first) = errors.first() else { return Ok(()) };
    let mut status = request.forbidden(object, "admission request denied by policy");
    status.message = first.message.clone();
    if let Some(reason) = first.reason {
        status.reason = Reason::from(reason);
    }
    let causes = errors.into_iter().map(|error| Cause::new(Str::default(), error.message, ""));
    status.details_mut().causes.extend(causes);
    Err(status)
}
