//! What the server sets in a pod before it is validated.

mod parts;
mod scheduling;

use crate::prepare::parts::{prepare_ephemeral_containers, prepare_resize};
use crate::prepare::scheduling::{follow_labels, read_app_armor};
use crate::validate::qos_class;
use kubelith_meta::call::Call;
use kubelith_meta::{Map, Value};
use kubelith_rules::Env;
use kubelith_schema::lifecycle::Part;

pub fn prepare_for_create(env: &Env, call: &Call, pod: &mut Value) {
    let given = pod.str_at(&["status", "qosClass"]);
    let class = if given.is_empty() { Value::from(qos_class(&env.features, pod)) } else { Value::from(given) };
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
    follow_labels(env, pod);
    read_app_armor(call, pod);
}

/// The account has an older name, which goes on saying the same.
pub fn mirror_service_account(pod: &mut Value) {
    if pod.get("spec").and_then(Value::as_object).is_some_and(Map::is_sealed) {
        return;
    }
    let name = pod.str_at(&["spec", "serviceAccountName"]);
    if !name.is_empty() && pod.str_at(&["spec", "serviceAccount"]) != name {
        let name = Value::from(name);
        pod.set_at(&["spec", "serviceAccount"], name);
    }
}

pub fn prepare_for_update(env: &Env, _call: &Call, part: Part<'_>, pod: &mut Value, old: &Value) {
    match part {
        Part::Main => return,
        Part::Other("ephemeralcontainers") => return prepare_ephemeral_containers(pod, old),
        Part::Other("resize") => return prepare_resize(env, pod, old),
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
