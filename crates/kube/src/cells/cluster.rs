//! Nodes, quotas, components and flow schemas.

use super::{CellFn, Row, condition, holds, int, joined};
use kubelith_meta::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "node_status" => node_status,
        "node_roles" => node_roles,
        "node_internal_ip" => |row| Some(node_address(row, "InternalIP").into()),
        "node_external_ip" => |row| Some(node_address(row, "ExternalIP").into()),
        "node_kernel" => node_kernel,
        "quota_requests" => |row| Some(quota(row, QuotaColumn::Requests).into()),
        "quota_limits" => |row| Some(quota(row, QuotaColumn::Limits).into()),
        "component_status" => |row| {
            Some(match healthy(row) {
                Some(condition) if holds(condition) => "Healthy".into(),
                Some(_) => "Unhealthy".into(),
                None => "Unknown".into(),
            })
        },
        "component_message" => |row| Some(healthy(row)?.str_at(&["message"]).into()),
        "component_error" => |row| Some(healthy(row)?.str_at(&["error"]).into()),
        "flow_schema_dangling" => {
            |row| Some(condition(row.conditions(), "Dangling").map_or("?", |c| c.str_at(&["status"])).into())
        }
        _ => return None,
    })
}

/// Flow schemas are listed in the order in which requests meet them; all else as it comes.
pub fn flow_schema_order(a: &Value, b: &Value) -> Ordering {
    if a.str_at(&["kind"]) != "FlowSchema" {
        return Ordering::Equal;
    }
    let key = |v: &Value| int(v, &["spec", "matchingPrecedence"]);
    key(a).cmp(&key(b)).then_with(|| a.str_at(&["metadata", "name"]).cmp(b.str_at(&["metadata", "name"])))
}

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

#[derive(Clone, Copy, PartialEq)]
enum QuotaColumn {
    Requests,
    Limits,
}

/// `pods: 1/10, requests.cpu: 0/4`.
fn quota(row: &Row<'_>, column: QuotaColumn) -> String {
    let hard = row.at(&["status", "hard"]).and_then(Value::as_object);
    let amounts = hard.into_iter().flat_map(|h| h.iter()).filter(|(name, _)| match column {
        QuotaColumn::Limits => name.starts_with("limits."),
        QuotaColumn::Requests => !name.starts_with("limits."),
    });
    let amounts = amounts.map(|(name, hard)| {
        let used = row.at(&["status", "used", name]).and_then(Value::as_str).unwrap_or("0");
        format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
    });
    amounts.collect::<Vec<_>>().join(", ")
}

fn healthy<'a>(row: &Row<'a>) -> Option<&'a Value> {
    condition(row.list(&["conditions"]), "Healthy")
}
