//! What of a job may change: how it is run, and while it is suspended what its pods are like.

use crate::batch::job::validate::{Labels, check_job, is_indexed, validate};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_rules::common::{Fields, IMMUTABLE, SPEC, member, meta_update};
use kubelith_rules::{Env, internal};

pub fn check(env: &Env, new: &Value, old: &Value) -> ErrorList {
    let had = |key: &str| old.at(&["spec", "template", "metadata", "labels", key]).is_some();
    let labels = match had("batch.kubernetes.io/job-name") && had("batch.kubernetes.io/controller-uid") {
        true => Labels::All,
        false => Labels::Legacy,
    };
    let mut errors = validate(env, new, labels);
    errors.extend(meta_update(new, old));
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    check_job(env, spec, &mut errors);
    check_completions(spec, before, &mut errors);
    immutable("selector", "*LabelSelector", spec, before, &mut errors);
    check_template(env, spec, before, old, &mut errors);
    immutable("completionMode", "*string", spec, before, &mut errors);
    immutable("podFailurePolicy", "*PodFailurePolicy", spec, before, &mut errors);
    immutable("backoffLimitPerIndex", "*int", spec, before, &mut errors);
    immutable("managedBy", "*string", spec, before, &mut errors);
    immutable("successPolicy", "*SuccessPolicy", spec, before, &mut errors);
    errors
}

pub fn immutable(key: &str, form: &str, spec: &Value, before: &Value, errors: &mut ErrorList) {
    internal::immutable(form, spec.get(key), before.get(key), &SPEC.child(key), errors);
}

pub fn check_completions(spec: &Value, before: &Value, errors: &mut ErrorList) {
    let (new, old) = (spec.int("completions"), before.int("completions"));
    if !is_indexed(spec) {
        return immutable("completions", "*int", spec, before, errors);
    }
    if let Some(count) = new.filter(|_| new != old && spec.int("parallelism") != new) {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(Error::invalid(&SPEC.child("completions"), count, detail));
    }
}

/// Suspended, and without pods.
pub fn is_at_rest(job: &Value) -> bool {
    let status = member(job, "status");
    let is_suspended = |c: &Value| c.text("type") == "Suspended" && c.text("status") == "True";
    let never_started = !status.has("startTime");
    member(job, "spec").flag("suspend")
        && (never_started || status.list("conditions").iter().any(is_suspended))
        && status.number("active") == 0
}

pub fn check_template(env: &Env, spec: &Value, before: &Value, old: &Value, errors: &mut ErrorList) {
    let template = member(spec, "template");
    let mut allowed = member(before, "template").clone();
    let is_at_rest = is_at_rest(old);
    // Without the feature of its own a job that never started may be sent elsewhere.
    let may_move = match env.features.job_scheduling {
        true => is_at_rest,
        false => member(old, "spec").flag("suspend") && !member(old, "status").has("startTime"),
    };
    let may_grow = is_at_rest && env.features.job_resources;
    if !may_move && !may_grow {
        return internal::immutable("PodTemplateSpec", Some(template), Some(&allowed), &SPEC.child("template"), errors);
    }
    if may_move {
        take_scheduling(&mut allowed, template);
    }
    if may_grow {
        take_resources(&mut allowed, template);
    }
    let [own, allowed] = [template, &allowed].map(|template| member(template, "spec"));
    if !internal::same("PodSpec", Some(own), Some(allowed)) {
        let shown = internal::shown("PodSpec", Some(own));
        // The reference names this path as one word.
        let path = SPEC.child("template.spec");
        errors.push(Error::invalid(&path, shown, IMMUTABLE));
    }
}

/// Where its pods may go.
pub fn take_scheduling(allowed: &mut Value, template: &Value) {
    for path in [
        &["spec", "nodeSelector"][..],
        &["spec", "tolerations"],
        &["spec", "schedulingGates"],
        &["metadata", "annotations"],
        &["metadata", "labels"],
    ] {
        put(allowed, path, template.at(path));
    }
    const AFFINITY: [&str; 2] = ["spec", "affinity"];
    const NODES: [&str; 3] = ["spec", "affinity", "nodeAffinity"];
    let affinity = template.at(&AFFINITY).filter(|a| !a.is_null());
    if affinity.is_some() || allowed.at(&AFFINITY).is_some_and(|a| !a.is_null()) {
        put(allowed, &NODES, template.at(&NODES));
        if affinity.is_some() && allowed.at(&AFFINITY).is_none() {
            allowed.set_at(&AFFINITY, Value::object());
        }
        if affinity.is_none() && allowed.at(&AFFINITY).is_some_and(Value::is_empty) {
            allowed.remove_at(&AFFINITY);
        }
    }
}

/// What their containers need.
pub fn take_resources(allowed: &mut Value, template: &Value) {
    for list in ["containers", "initContainers"] {
        let own = member(template, "spec").list(list);
        let Some(containers) = allowed.at_mut(&["spec", list]).and_then(Value::as_array_mut) else { continue };
        if containers.len() != own.len() {
            continue;
        }
        for (container, own) in containers.iter_mut().zip(own).filter(|(c, own)| c.text("name") == own.text("name")) {
            put(container, &["resources"], own.get("resources"));
        }
    }
}

pub fn put(object: &mut Value, path: &[&str], value: Option<&Value>) {
    match value {
        Some(value) => object.set_at(path, value.clone()),
        None => drop(object.remove_at(path)),
    }
}
