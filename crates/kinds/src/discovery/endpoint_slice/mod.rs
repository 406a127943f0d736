//! EndpointSlices.

pub mod cells;
pub mod validate;

use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_meta::field::Path;
use kubelith_meta::names::{NameUse, ip_warnings, name_is_dns_subdomain};
use kubelith_rules::Kind;
use kubelith_rules::gated::{Feature, feature};
use kubelith_schema::lifecycle::{Generation, count_change};

pub const ENDPOINT_SLICE: Kind = Kind {
    group: "discovery.k8s.io",
    plural: "endpointslices",
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    cells: cells::CELLS,

    generation: Generation::ContentAndLabels,
    counts_dropped: true,
    prepare_for_create: |_, call, slice| drop_topology(call, slice, None),
    prepare_for_update: |_, call, _, slice, old| drop_topology(call, slice, Some(old)),
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

const FEATURES: &[Feature] = &[feature(&["PreferSameTrafficDistribution"], &["endpoints[].hints.forNodes"])];

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

/// The old way to say where an endpoint is can be written by way of v1beta1 only. What it said of the node is kept.
fn drop_topology(call: &Call, slice: &mut Value, old: Option<&Value>) {
    const HOSTNAME: [&str; 2] = ["deprecatedTopology", "kubernetes.io/hostname"];
    let is_same = old.is_some_and(|old| old.get("endpoints") == slice.get("endpoints"));
    if call.kind.version == "v1beta1" || is_same {
        return;
    }
    let before = old.and_then(|old| old.get("endpoints")).and_then(Value::as_array).unwrap_or(&[]);
    let known: Vec<&str> = before.iter().map(|e| e.str_at(&HOSTNAME)).filter(|name| !name.is_empty()).collect();
    let mut is_changed = false;
    for endpoint in slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        let node = endpoint.str_at(&HOSTNAME).to_owned();
        let is_name = name_is_dns_subdomain(&node, NameUse::Full).is_empty();
        if endpoint.get("nodeName").is_none() && known.contains(&node.as_str()) && is_name {
            endpoint.set_at(&["nodeName"], node.into());
        }
        is_changed |= endpoint.remove_at(&HOSTNAME[..1]).is_some_and(|topology| !topology.is_empty());
    }
    if let Some(old) = old.filter(|_| is_changed) {
        count_change(slice, old);
    }
}
