//! Kinds of the smaller groups whose only behaviour is a rule or two.

use super::{Kind, pod_warnings};
use kubelith_meta::field::Path;
use kubelith_meta::names::ip_warnings;
use kubelith_meta::text::Quoted;
use kubelith_meta::time::{Clock, SystemClock};
use kubelith_meta::{Map, Value};
use kubelith_registry::{Call, Generation, Part};

pub const ENDPOINT_SLICE: Kind = Kind {
    generation: Generation::ContentAndLabels,
    warnings_on_create: |_, slice| {
        let mut warnings = Vec::new();
        if slice.str_at(&["addressType"]) == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".into());
        }
        warnings.extend(address_warnings(slice));
        warnings
    },
    warnings_on_update: |_, _, slice, _| address_warnings(slice),
    ..Kind::PLAIN
};

pub const INGRESS: Kind = Kind {
    generation: Generation::Spec,
    warnings_on_create: |_, ingress| {
        const ANNOTATION: &str = "kubernetes.io/ingress.class";
        let annotated = ingress.meta().annotation(ANNOTATION).is_some();
        if !annotated || ingress.at(&["spec", "ingressClassName"]).is_some() {
            return Vec::new();
        }
        let name = Quoted(ANNOTATION);
        vec![format!("annotation {name} is deprecated, please use 'spec.ingressClassName' instead")]
    },
    warnings_on_update: |_, part, ingress, _| {
        let addresses = ingress.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array);
        let addresses = if part == Part::Status { addresses.unwrap_or(&[]) } else { &[] };
        let named = addresses.iter().enumerate().map(|(i, a)| (format!("status.loadBalancer.ingress[{i}]"), a));
        named.flat_map(|(path, a)| ip_warnings(a.str_at(&["ip"]), &Path::new(&path))).collect()
    },
    ..Kind::PLAIN
};

pub const STORAGE_CLASS: Kind = Kind {
    delete_returns_object: true,
    warnings_on_create: |_, class| storage_class_warnings(class),
    warnings_on_update: |_, _, class, _| storage_class_warnings(class),
    ..Kind::PLAIN
};

pub const CSI_STORAGE_CAPACITY: Kind = Kind {
    updates_unconditionally: false,
    warnings_on_create: |_, capacity| capacity_warnings(capacity),
    warnings_on_update: |_, _, capacity, _| capacity_warnings(capacity),
    ..Kind::PLAIN
};

pub const RUNTIME_CLASS: Kind = Kind {
    creates_on_update: true,
    updates_unconditionally: false,
    warnings_on_create: |_, class| runtime_class_warnings(class),
    warnings_on_update: |_, _, class, _| runtime_class_warnings(class),
    ..Kind::PLAIN
};

/// Clients ask, the server says who asked. Nothing of a request changes but its answers: conditions by /approval, the
/// certificate by /status.
pub const CERTIFICATE_SIGNING_REQUEST: Kind = Kind {
    prepare_for_create: |call, request| {
        set_requester(call, request);
        drop(request.remove_at(&["status"]));
    },
    prepare_for_update: prepare_request_update,
    reset_fields: |part| match part {
        Part::Main => &[&["spec"], &["status"]],
        Part::Status => &[&["spec"], &["status", "conditions"]],
        Part::Other(_) => &[&["spec"], &["status", "certificate"]],
    },
    ..Kind::PLAIN
};

/// Updates of /status leave metadata alone.
pub const fn sealed(mut kind: Kind) -> Kind {
    kind.prepare_for_update = |_, part, object, old| {
        if part == Part::Status {
            keep_metadata(object, old);
        }
    };
    kind.reset_fields = |part| match part {
        Part::Main => &[&["status"]],
        Part::Status => &[&["metadata"], &["spec"]],
        Part::Other(_) => &[],
    };
    kind
}

fn keep_metadata(object: &mut Value, old: &Value) {
    let kept =
        ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"];
    for key in kept {
        match old.at(&["metadata", key]) {
            Some(value) => object.set_at(&["metadata", key], value.clone()),
            None => drop(object.remove_at(&["metadata", key])),
        }
    }
}

fn address_warnings(slice: &Value) -> Vec<String> {
    if is_by_controller(slice) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, endpoint) in slice.get("endpoints").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        for (j, address) in endpoint.get("addresses").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
            let path = format!("endpoints[{i}].addresses[{j}]");
            warnings.extend(ip_warnings(address.as_str().unwrap_or(""), &Path::new(&path)));
        }
    }
    warnings
}

/// Slices of the controllers of Kubernetes itself repeat addresses that somebody was warned about already.
fn is_by_controller(slice: &Value) -> bool {
    let by = slice.meta().label("endpointslice.kubernetes.io/managed-by");
    matches!(by, Some("endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io"))
}

fn storage_class_warnings(class: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, term) in class.get("allowedTopologies").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        let expressions = term.get("matchLabelExpressions").and_then(Value::as_array).unwrap_or(&[]);
        for (j, expression) in expressions.iter().enumerate() {
            if let Some(why) = pod_warnings::old_node_label(expression.str_at(&["key"])) {
                warnings.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {why}"));
            }
        }
    }
    warnings
}

fn capacity_warnings(capacity: &Value) -> Vec<String> {
    let Some(topology) = capacity.get("nodeTopology") else { return Vec::new() };
    let mut warnings = pod_warnings::of_node_selector_term("nodeTopology", topology, false);
    for key in topology.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        warnings.extend(pod_warnings::old_node_label(key).map(|why| format!("nodeTopology.matchLabels.{key}: {why}")));
    }
    warnings
}

fn runtime_class_warnings(class: &Value) -> Vec<String> {
    let selector = class.at(&["scheduling", "nodeSelector"]).and_then(Value::as_object);
    let keys = selector.into_iter().flat_map(Map::keys);
    keys.filter_map(pod_warnings::old_node_label).map(|why| format!("scheduling.nodeSelector: {why}")).collect()
}

fn set_requester(call: &Call, request: &mut Value) {
    let spec = request.make_object().entry_or_null("spec").make_object();
    for key in ["username", "uid", "groups", "extra"] {
        spec.remove(key);
    }
    let user = &call.user;
    spec.insert("username", user.name.clone());
    if !user.uid.is_empty() {
        spec.insert("uid", user.uid.clone());
    }
    if !user.groups.is_empty() {
        spec.insert("groups", user.groups.to_vec());
    }
    let extra: Map = user.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.to_vec()))).collect();
    if !extra.is_empty() {
        spec.insert("extra", Value::Object(extra));
    }
}

fn prepare_request_update(_: &Call, part: Part<'_>, request: &mut Value, old: &Value) {
    let keep = |request: &mut Value, path: &[&str]| match old.at(path) {
        Some(value) => request.set_at(path, value.clone()),
        None => drop(request.remove_at(path)),
    };
    keep(request, &["spec"]);
    match part {
        Part::Main => {}
        Part::Status => {
            keep_verdicts(request, old);
            stamp_conditions(request, old);
        }
        Part::Other(_) => {
            stamp_conditions(request, old);
            keep(request, &["status", "certificate"]);
        }
    }
}

fn conditions(request: &Value) -> &[Value] {
    request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[])
}

/// Approved and Denied conditions are those of /approval: where /status has as many of them, they stay what they were.
/// Where it has not, validation refuses it.
fn keep_verdicts(request: &mut Value, old: &Value) {
    for verdict in ["Approved", "Denied"] {
        let is = |condition: &&Value| condition.str_at(&["type"]) == verdict;
        let kept: Vec<Value> = conditions(old).iter().filter(is).cloned().collect();
        if conditions(request).iter().filter(is).count() != kept.len() {
            continue;
        }
        let list = request.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut);
        let places = list.into_iter().flatten().filter(|condition| condition.str_at(&["type"]) == verdict);
        for (place, condition) in places.zip(kept) {
            *place = condition;
        }
    }
}

/// Conditions that come without times get them: now, or when their status was last as it is.
fn stamp_conditions(request: &mut Value, old: &Value) {
    let now = SystemClock.now().rfc3339();
    let list = request.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut);
    for condition in list.into_iter().flatten() {
        let absent = |c: &Value, key: &str| c.get(key).is_none_or(Value::is_null);
        if absent(condition, "lastUpdateTime") {
            condition.set_at(&["lastUpdateTime"], now.clone().into());
        }
        if absent(condition, "lastTransitionTime") {
            let same = conditions(old).iter().find(|o| {
                o.str_at(&["type"]) == condition.str_at(&["type"])
                    && o.str_at(&["status"]) == condition.str_at(&["status"])
                    && !absent(o, "lastTransitionTime")
            });
            let time = same.and_then(|o| o.get("lastTransitionTime")).cloned();
            condition.set_at(&["lastTransitionTime"], time.unwrap_or_else(|| now.clone().into()));
        }
    }
}
