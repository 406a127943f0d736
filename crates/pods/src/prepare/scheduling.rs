//! What a new pod gets from its own fields: selectors that follow its labels, and AppArmor profiles as fields.

use kubelith_meta::call::Call;
use kubelith_meta::{Value, members};
use kubelith_rules::Env;

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The longest path of a profile on a node.
const PROFILE_MAX: usize = 4095;

/// Affinity terms that name labels instead of their values select by the values that this pod has.
pub fn follow_labels(env: &Env, pod: &mut Value) {
    let spec = pod.get("spec").unwrap_or(Value::NULL);
    members!(spec => affinity: "affinity", constraints: "topologySpreadConstraints");
    if affinity.is_null() && constraints.is_null() {
        return;
    }
    let labels = pod.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = pod.at_mut(&["spec", "affinity", kind]) else { continue };
        for term in list_mut(affinity, "requiredDuringSchedulingIgnoredDuringExecution") {
            follow(term, &labels);
        }
        for weighted in list_mut(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                follow(term, &labels);
            }
        }
    }
    let follows = env.features.spread_labels && env.features.follows_spread_labels;
    if let Some(spec) = pod.get_mut("spec").filter(|_| follows) {
        for constraint in list_mut(spec, "topologySpreadConstraints") {
            follow(constraint, &labels);
        }
    }
}

fn list_mut<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn follow(term: &mut Value, labels: &Value) {
    // Without a selector the term matches nothing, and goes on doing so.
    if term.get("labelSelector").is_none() {
        return;
    }
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term.get(keys).and_then(Value::as_array).unwrap_or(&[]).to_vec();
        let known = keys.iter().filter_map(Value::as_str).filter_map(|key| Some((key, labels.get(key)?)));
        for (key, value) in known {
            let mut requirement = Value::from([("key", key), ("operator", operator)]);
            requirement.set_at(&["values"], Value::Array(vec![value.clone()]));
            const PATH: [&str; 2] = ["labelSelector", "matchExpressions"];
            let mut all = term.at(&PATH).and_then(Value::as_array).unwrap_or(&[]).to_vec();
            all.push(requirement);
            term.set_at(&PATH, Value::Array(all));
        }
    }
}

/// Profiles that are written in the old way, as annotations, are written as fields, too.
pub fn read_app_armor(call: &Call, pod: &mut Value) {
    if !pod.meta().annotations().is_some_and(|all| all.keys().any(|key| key.starts_with(APP_ARMOR))) {
        return;
    }
    if pod.str_at(&["spec", "os", "name"]) == "windows" {
        return;
    }
    let of_pod = pod.at(&["spec", "securityContext", "appArmorProfile"]).cloned();
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        let count = pod.at(&["spec", kind]).and_then(Value::as_array).map_or(0, <[_]>::len);
        for i in 0..count {
            let container = &pod.at(&["spec", kind]).and_then(Value::as_array).expect("counted")[i];
            let key = format!("{APP_ARMOR}{}", container.str_at(&["name"]));
            let is_set = container.at(&["securityContext", "appArmorProfile"]).is_some();
            let Some(annotation) = pod.meta().annotation(&key).filter(|_| !is_set) else { continue };
            let field = as_field(annotation);
            if field.is_some() && field == of_pod {
                continue;
            }
            call.warn(format!(
                "metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
            ));
            if let Some(field) = field {
                let all = pod.at_mut(&["spec", kind]).and_then(Value::as_array_mut).expect("counted");
                all[i].set_at(&["securityContext", "appArmorProfile"], field);
            }
        }
    }
}

fn as_field(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(Value::from([("type", "Unconfined")])),
        "runtime/default" => Some(Value::from([("type", "RuntimeDefault")])),
        other => {
            let name = other.strip_prefix("localhost/")?;
            let good = !name.is_empty() && name.trim() == name && name.len() <= PROFILE_MAX;
            good.then(|| Value::from([("localhostProfile", name), ("type", "Localhost")]))
        }
    }
}
