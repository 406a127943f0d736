//! Namespaces, nodes and the limits of a namespace.

use super::resources::{complete, copy_absent, round_up};
use super::{Rules, text};
use kubelith_meta::{Map, Str, Value};

pub const RULES: Rules = &[
    ("io.k8s.api.core.v1.Namespace", name_label),
    ("io.k8s.api.core.v1.NodeSpec", pod_ranges),
    ("io.k8s.api.core.v1.NodeStatus", allocatable),
    ("io.k8s.api.core.v1.LimitRangeItem", limit),
];

/// Every namespace has its name as a label, so that selectors can name it.
fn name_label(namespace: &mut Map) {
    const LABEL: &str = "kubernetes.io/metadata.name";
    let Some(Value::Object(metadata)) = namespace.get_mut("metadata") else { return };
    let name = text(metadata, "name");
    if name.is_empty() || metadata.get("labels").and_then(|l| l.get(LABEL)).and_then(Value::as_str) == Some(name) {
        return;
    }
    let name = Str::from(name);
    metadata.entry_or_null("labels").make_object().insert(LABEL, name);
}

/// `podCIDR` is the first of `podCIDRs`, and wins if they differ (core/v1/conversion.go).
fn pod_ranges(spec: &mut Map) {
    let first = spec.get("podCIDRs").and_then(Value::as_array).and_then(<[Value]>::first).and_then(Value::as_str);
    match (text(spec, "podCIDR"), first) {
        ("", Some(first)) if !first.is_empty() => {
            let first = Str::from(first);
            spec.insert("podCIDR", first);
        }
        ("", _) => {}
        (single, first) if first == Some(single) => {}
        (single, _) => {
            let only = vec![Str::from(single)];
            spec.insert("podCIDRs", only);
        }
    }
}

fn allocatable(status: &mut Map) {
    copy_absent(status, "capacity", "allocatable");
    round_up(status, &["capacity", "allocatable"]);
}

/// What a container gets if it says nothing follows from what it may at most and at least have.
fn limit(item: &mut Map) {
    if text(item, "type") == "Container" {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            if let Some(Value::Object(amounts)) = item.get(from).cloned() {
                complete(item, to, &amounts);
            }
        }
    }
    round_up(item, &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]);
}
