//! Ranges of pods, and what is allocatable.

use kubelith_meta::{Map, Str, Value};
use kubelith_rules::defaults::amounts::{copy_absent, round_up};
use kubelith_rules::defaults::{Defaults, text};

pub const RULES: Defaults =
    &[("io.k8s.api.core.v1.NodeSpec", pod_ranges), ("io.k8s.api.core.v1.NodeStatus", allocatable)];

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
