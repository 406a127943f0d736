//! Pods.

use super::pod_parts;
use super::pod_prepare;
use crate::strategies::apps::name_warnings;
use crate::strategies::{Kind, pod_warnings};
use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_meta::names::ip_warnings;
use kubelith_registry::{Call, DeleteOptions, Generation, Part};
use kubelith_validation::Env;

pub const POD: Kind = Kind {
    generation: Generation::Spec,
    // All of it is written anew but for the quality of service.
    keeps_status_on_create: true,
    prepare_for_create,
    prepare_for_update,
    validates_metadata: true,
    warnings_on_create: |_, pod| {
        let mut warnings = name_warnings(pod, "the Pod's hostname");
        warnings.extend(pod_warnings::of_pod(pod));
        warnings
    },
    warnings_on_update: |_, part, pod, _| if part == Part::Status { address_warnings(pod) } else { Vec::new() },
    canonicalize: mirror_service_account,
    graceful_delete: Some(graceful_delete),
    delete_returns_object: true,
    reset_fields: |part| match part {
        Part::Main => &[&["status"]],
        Part::Status => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        // What ephemeralcontainers and resize cannot change is owned all the same, as in the reference.
        Part::Other(_) => &[],
    },
    ..Kind::PLAIN
};

fn prepare_for_create(env: &Env, call: &Call, pod: &mut Value) {
    let given = pod.str_at(&["status", "qosClass"]);
    let class = if given.is_empty() {
        Value::from(kubelith_validation::qos_class(&env.features, pod))
    } else {
        Value::from(given)
    };
    let mut status = Value::from([("phase", Value::from("Pending")), ("qosClass", class)]);
    if pod.at(&["spec", "schedulingGates"]).and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
        let mut gated = Value::from([
            ("type", "PodScheduled"),
            ("status", "False"),
            ("reason", "SchedulingGated"),
            ("message", "Scheduling is blocked due to non-empty scheduling gates"),
        ]);
        gated.set_at(&["lastTransitionTime"], env.now().rfc3339().into());
        status.set_at(&["conditions"], Value::Array(vec![gated]));
    }
    pod.set_at(&["status"], status);
    pod_prepare::follow_labels(env, pod);
    pod_prepare::read_app_armor(call, pod);
}

fn address_warnings(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in ["podIPs", "hostIPs"] {
        let all = pod.at(&["status", key]).and_then(Value::as_array).unwrap_or(&[]);
        for (i, address) in all.iter().enumerate() {
            let path = format!("status.{key}[{i}].ip");
            warnings.extend(ip_warnings(address.str_at(&["ip"]), &Path::new(&path)));
        }
    }
    warnings
}

/// The account has an older name, which goes on saying the same.
fn mirror_service_account(pod: &mut Value) {
    let name = pod.str_at(&["spec", "serviceAccountName"]);
    if !name.is_empty() && pod.str_at(&["spec", "serviceAccount"]) != name {
        let name = Value::from(name);
        pod.set_at(&["spec", "serviceAccount"], name);
    }
}

fn prepare_for_update(env: &Env, _call: &Call, part: Part<'_>, pod: &mut Value, old: &Value) {
    match part {
        Part::Main => return,
        Part::Other("ephemeralcontainers") => return pod_parts::prepare_ephemeral_containers(pod, old),
        Part::Other("resize") => return pod_parts::prepare_resize(env, pod, old),
        Part::Other(_) => return,
        Part::Status => {}
    }
    pod.meta_mut().remove("deletionTimestamp");
    pod.copy_at(&["metadata", "ownerReferences"], old);
    for key in ["qosClass", "observedGeneration"] {
        if pod.at(&["status", key]).is_none_or(Value::is_empty)
            && let Some(kept) = old.at(&["status", key])
        {
            pod.set_at(&["status", key], kept.clone());
        }
    }
}

/// The period is the client's, else the pod's own; a pod that no node runs goes at once.
fn graceful_delete(pod: &Value, options: &mut DeleteOptions) -> bool {
    let own = pod.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let mut period = options.grace_period_seconds.or(own).unwrap_or(0);
    let unbound = pod.str_at(&["spec", "nodeName"]).is_empty();
    let ended = matches!(pod.str_at(&["status", "phase"]), "Failed" | "Succeeded");
    if unbound || ended {
        period = 0;
    }
    options.grace_period_seconds = Some(if period < 0 { 1 } else { period });
    true
}
