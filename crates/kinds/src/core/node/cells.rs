//! Status, roles and addresses.

use kubelith_meta::Value;
use kubelith_rules::cells::{Cells, Row, holds, joined};
use std::collections::BTreeSet;

pub const CELLS: Cells = &[
    ("node_status", node_status),
    ("node_roles", node_roles),
    ("node_internal_ip", |row| Some(node_address(row, "InternalIP").into())),
    ("node_external_ip", |row| Some(node_address(row, "ExternalIP").into())),
    ("node_kernel", node_kernel),
];

fn node_status(row: &Row<'_>) -> Option<Value> {
    // The last condition of a type counts.
    let status = match row.conditions().iter().rfind(|c| c.str_at(&["type"]) == "Ready") {
        Some(ready) if holds(ready) => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let is_cordoned = row.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true));
    Some(if is_cordoned { format!("{status},SchedulingDisabled").into() } else { status.into() })
}

fn node_roles(row: &Row<'_>) -> Option<Value> {
    let labels = row.at(&["metadata", "labels"]).and_then(Value::as_object);
    let role = |(key, value): (&'_ str, &'_ Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let roles: BTreeSet<String> =
        labels.into_iter().flat_map(|l| l.iter()).filter_map(role).filter(|r| !r.is_empty()).collect();
    Some(if roles.is_empty() { "<none>".into() } else { joined(roles.iter().map(String::as_str), ",").into() })
}

/// The first address of a type.
fn node_address<'a>(row: &Row<'a>, kind: &str) -> &'a str {
    let address = row.list(&["status", "addresses"]).iter().find(|a| a.str_at(&["type"]) == kind);
    address.map_or("<none>", |a| a.str_at(&["address"]))
}

fn node_kernel(row: &Row<'_>) -> Option<Value> {
    let info = |name| row.text(&["status", "nodeInfo", name]);
    let version = if info("kernelVersion").is_empty() { "<unknown>" } else { info("kernelVersion") };
    Some(match info("architecture") {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    })
}
