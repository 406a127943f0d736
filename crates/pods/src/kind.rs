//! Everything that sets pods apart, in the order in which it holds.

use crate::prepare::{mirror_service_account, prepare_for_create, prepare_for_update};
use crate::template::name_warnings;
use crate::{cells, defaults, gated, validate, warnings};
use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_meta::names::ip_warnings;
use kubelith_rules::{Kind, Switched};
use kubelith_schema::lifecycle::{DeleteOptions, Generation, Part};

pub const POD: Kind = Kind {
    group: "",
    plural: "pods",
    defaults: defaults::RULES,
    switched: &[Switched { gate: "PodLevelResources", on: defaults::WITH_RESOURCES, off: defaults::WITHOUT_RESOURCES }],
    features: &[(&["spec"], gated::POD_FEATURES), (&["status"], gated::POD_STATUS), (&[], gated::STATUS_BY_SPEC)],
    rules: validate::RULES,
    cells: cells::CELLS,

    generation: Generation::Spec,
    // All of it is written anew but for the quality of service.
    keeps_status_on_create: true,
    prepare_for_create,
    prepare_for_update,
    validates_metadata: true,
    warnings_on_create: |_, pod| {
        let mut warnings = name_warnings(pod, "the Pod's hostname");
        warnings.extend(warnings::of_pod(pod));
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
