//! What happens to an object on its way through the reference's internal types and back to its own version: old
//! names of fields follow the new ones, and what a version cannot say falls away. Every object that is written
//! goes that way, after defaults were filled in.

use super::values::{object, objects_at};
use super::{disruption_budget, find};
use crate::catalog::builtin;
use kubelith_codec::base64;
use kubelith_meta::{GroupVersionKind, Map, Value};
use kubelith_schema::{Empties, canonicalize};

/// Annotations of a time when init containers had no fields of their own.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// Where DaemonSets show a counter that apps/v1 has no field for.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Brings an object to the form that it has after it went through the internal types. It stays canonical.
pub fn normalize(value: &mut Value, gvk: &GroupVersionKind) {
    let template = template_path(gvk);
    let spoke = find(gvk);
    let change: Option<fn(&mut Value)> = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => Some(pod),
        ("", "Node") => Some(node),
        ("", "Secret") => Some(secret),
        ("apps", "DaemonSet") => Some(daemon_set),
        ("apps", "StatefulSet") => Some(claim_templates),
        ("policy", "PodDisruptionBudget") if gvk.version == "v1" => Some(disruption_budget::strip_v1),
        _ => None,
    };
    if template.is_none() && spoke.is_none() && change.is_none() {
        return;
    }
    change.into_iter().for_each(|change| change(value));
    template.and_then(|path| value.at_mut(path)).into_iter().for_each(pod_template);
    if let Some(spoke) = spoke {
        (spoke.to_hub)(value);
        (spoke.from_hub)(value);
    }
    if let Some(schema) = builtin().kind_schema(gvk) {
        canonicalize(&schema.table, &schema.root, value, Empties::Distinct);
    }
}

/// Where a kind has its pod template.
fn template_path(gvk: &GroupVersionKind) -> Option<&'static [&'static str]> {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "PodTemplate") => Some(&["template"]),
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => Some(&["spec", "template"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template"]),
        _ => None,
    }
}

fn pod(pod: &mut Value) {
    pod_template(pod);
    first_of_many(pod, ["status", "podIP", "podIPs"], |ip| Value::from([("ip", ip)]), |v| v.get("ip").cloned());
    let grace = pod.at_mut(&["spec", "terminationGracePeriodSeconds"]);
    if let Some(Value::Int(seconds @ i64::MIN..0)) = grace {
        *seconds = 1;
    }
}

/// A pod or its template.
fn pod_template(template: &mut Value) {
    if let Some(annotations) = template.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !INIT_CONTAINER_ANNOTATIONS.contains(&key));
    }
    let Some(spec) = object(template, "spec") else { return };
    // The old name gives the value only if the new one does not.
    let account = |spec: &Map, key: &str| spec.get(key).filter(|v| !v.is_empty()).cloned();
    if let Some(name) = account(spec, "serviceAccountName").or_else(|| account(spec, "serviceAccount")) {
        spec.insert("serviceAccount", name.clone());
        spec.insert("serviceAccountName", name);
    }
    // The internal type keeps some of the spec's fields in there, and so always has one.
    if spec.get("securityContext").is_none_or(Value::is_null) {
        spec.insert("securityContext", Map::new());
    }
}

fn node(node: &mut Value) {
    first_of_many(node, ["spec", "podCIDR", "podCIDRs"], |cidr| cidr, |v| Some(v.clone()));
}

/// `[parent, one, many]`: the single value wins over the list, and else is its first element.
fn first_of_many(
    value: &mut Value,
    [parent, one, many]: [&str; 3],
    to_element: impl Fn(Value) -> Value,
    from_element: impl Fn(&Value) -> Option<Value>,
) {
    let Some(map) = object(value, parent) else { return };
    let single = map.get(one).filter(|v| !v.is_empty()).cloned();
    let first = map.get(many).and_then(Value::as_array).and_then(|list| from_element(list.first()?));
    match (single, first) {
        (Some(single), first) if first.as_ref() != Some(&single) => {
            map.insert(many, Value::Array(vec![to_element(single)]));
        }
        (None, Some(first)) => {
            map.insert(one, first);
        }
        _ => {}
    }
}

/// What was written as text becomes data, which is all that is ever shown.
fn secret(secret: &mut Value) {
    let Some(map) = secret.as_object_mut() else { return };
    if let Some(Value::Object(texts)) = map.remove("stringData") {
        let data = map.entry_or_null("data").make_object();
        for (key, text) in texts {
            data.insert(key, base64::encode(text.as_str().unwrap_or("").as_bytes()));
        }
    }
}

fn daemon_set(set: &mut Value) {
    let path = ["metadata", "annotations", TEMPLATE_GENERATION];
    let generation = set.str_at(&path).parse::<i64>().unwrap_or(0);
    set.set_at(&path, generation.to_string().into());
}

fn claim_templates(set: &mut Value) {
    for claim in objects_at(set, &["spec", "volumeClaimTemplates"]) {
        claim.insert("apiVersion", "v1");
        claim.insert("kind", "PersistentVolumeClaim");
    }
}
