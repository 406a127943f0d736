//! Policies, claims and constraints, which templates have, too.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::{Namespacing, validate_conditions};
use kubelith_meta::selector::validate_label_name;
use kubelith_rules::common::{Fields, SPEC, member, meta, meta_update, supported};
use kubelith_rules::declared::{at_least, at_most, long_name, one_member, required, short_name, unchanged};
use kubelith_rules::{Env, Request, Rules, internal};

const MAX_CLAIMS: usize = 4;

const HIGHEST_PRIORITY: i64 = 1_000_000_000;

const STATUS: Path<'static> = Path::new("status");

pub const RULES: Rules = Rules {
    create: |request, group| {
        let mut errors = meta(group, Namespacing::Required, name_is_dns_subdomain);
        check_group(request.env, member(group, "spec"), &mut errors);
        errors
    },
    update: group_update,
};

fn group_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    let [spec, before] = [new, old].map(|group| member(group, "spec"));
    if request.subresource == "status" {
        check_status(member(new, "status"), spec, &mut errors);
        return errors;
    }
    let features = &request.env.features;
    for (key, form, is_on) in [
        ("podGroupTemplateRef", "*PodGroupTemplateReference", true),
        ("schedulingPolicy", "PodGroupSchedulingPolicy", true),
        ("schedulingConstraints", "*PodGroupSchedulingConstraints", features.workload_topology),
        ("resourceClaims", "[]PodGroupResourceClaim", true),
        ("disruptionMode", "*string", features.workload_preemption),
        ("priorityClassName", "string", features.workload_preemption),
        ("priority", "*int", features.workload_preemption),
    ] {
        if is_on {
            unchanged(form, spec, before, key, &SPEC, &mut errors);
        } else if spec.has(key) && !internal::same(form, spec.get(key), before.get(key)) {
            // It was not dropped because the stored group has it, if only by default.
            errors.push(Error::forbidden(&SPEC.child(key), ""));
        }
    }
    errors
}

fn check_group(env: &Env, spec: &Value, errors: &mut ErrorList) {
    if let Some(reference) = spec.some("podGroupTemplateRef") {
        let path = SPEC.child("podGroupTemplateRef");
        one_member(reference, &["workload"], &path, errors);
        if let Some(workload) = reference.some("workload") {
            let path = path.child("workload");
            required(workload, "workloadName", &path, errors, long_name);
            required(workload, "podGroupTemplateName", &path, errors, short_name);
        }
    }
    check_parts(env, spec, &SPEC, errors);
}

/// What groups and their templates have in common.
pub fn check_parts(env: &Env, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (policy, policy_path) = (member(spec, "schedulingPolicy"), path.child("schedulingPolicy"));
    one_member(policy, &["basic", "gang"], &policy_path, errors);
    if let Some(gang) = policy.some("gang") {
        let path = policy_path.children(&["gang", "minCount"]);
        match gang.number("minCount") {
            0 => errors.push(Error::required(&path, "")),
            count => at_least(count, 1, &path, errors),
        }
    }
    let topology = member(spec, "schedulingConstraints").list("topology");
    let topology_path = path.children(&["schedulingConstraints", "topology"]);
    if topology.len() > 1 {
        errors.push(Error::too_many(&topology_path, topology.len(), 1));
    }
    for (i, constraint) in topology.iter().enumerate() {
        required(constraint, "key", &topology_path.index(i), errors, |key, path, errors| {
            errors.extend(validate_label_name(key, path));
        });
    }
    check_claims(spec.list("resourceClaims"), &path.child("resourceClaims"), errors);
    if !env.features.workload_preemption {
        return;
    }
    if let Some(mode) = spec.some("disruptionMode").and_then(Value::as_str) {
        supported(mode, &["Pod", "PodGroup"], &path.child("disruptionMode"), errors);
    }
    if !spec.text("priorityClassName").is_empty() {
        long_name(spec.text("priorityClassName"), &path.child("priorityClassName"), errors);
    }
    if let Some(priority) = spec.int("priority") {
        at_most(priority, HIGHEST_PRIORITY, &path.child("priority"), errors);
    }
}

fn check_claims(claims: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    if claims.len() > MAX_CLAIMS {
        return errors.push(Error::too_many(path, claims.len(), MAX_CLAIMS));
    }
    repeated("v1alpha2.PodGroupResourceClaim", claims, path, errors);
    for (i, claim) in claims.iter().enumerate() {
        let path = path.index(i);
        one_member(claim, &["resourceClaimName", "resourceClaimTemplateName"], &path, errors);
        required(claim, "name", &path, errors, short_name);
        for key in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(name) = claim.some(key).and_then(Value::as_str) {
                long_name(name, &path.child(key), errors);
            }
        }
    }
}

/// Items are told apart by their names.
pub fn repeated(form: &str, items: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, item) in items.iter().enumerate() {
        if items[..i].iter().any(|other| other.text("name") == item.text("name")) {
            errors.push(Error::duplicate(&path.index(i), internal::shown(form, Some(item))));
        }
    }
}

fn check_status(status: &Value, spec: &Value, errors: &mut ErrorList) {
    errors.extend(validate_conditions(status.list("conditions"), &STATUS.child("conditions")));
    let (claims, path) = (status.list("resourceClaimStatuses"), STATUS.child("resourceClaimStatuses"));
    for (i, claim) in claims.iter().enumerate() {
        let name = claim.text("name");
        if !spec.list("resourceClaims").iter().any(|known| known.text("name") == name) {
            let path = path.index(i);
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(Error::invalid(&path.child("name"), name, detail));
        }
    }
    if claims.len() > MAX_CLAIMS {
        return errors.push(Error::too_many(&path, claims.len(), MAX_CLAIMS));
    }
    for (i, claim) in claims.iter().enumerate() {
        if let Some(name) = claim.some("resourceClaimName").and_then(Value::as_str) {
            let path = path.index(i);
            long_name(name, &path.child("resourceClaimName"), errors);
        }
    }
}
