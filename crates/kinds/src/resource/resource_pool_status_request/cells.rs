//! Sums over pools.

use kubelith_meta::{Str, Value};
use kubelith_rules::cells::{Cells, Row, holds, int};

pub const CELLS: Cells = &[
    ("pool_total", |row| Some(sum(row, "totalDevices"))),
    ("pool_available", |row| Some(sum(row, "availableDevices"))),
    ("pool_allocated", |row| Some(sum(row, "allocatedDevices"))),
    ("pool_unavailable", |row| Some(sum(row, "unavailableDevices"))),
    ("pool_errors", pool_errors),
    ("pool_status", pool_status),
    ("pool_completed", pool_completed),
];

/// What became of a request, by its first condition that holds.
fn outcome<'a>(row: &Row<'a>) -> Option<&'a Value> {
    row.conditions().iter().find(|c| matches!(c.str_at(&["type"]), "Complete" | "Failed") && holds(c))
}

fn is_counted(row: &Row<'_>) -> bool {
    row.at(&["status"]).is_some() && outcome(row).is_none_or(|c| c.str_at(&["type"]) != "Failed")
}

fn sum(row: &Row<'_>, member: &str) -> Value {
    if !is_counted(row) {
        return "-".into();
    }
    row.list(&["status", "pools"]).iter().map(|p| int(p, &[member])).sum::<i64>().to_string().into()
}

fn pool_errors(row: &Row<'_>) -> Option<Value> {
    if !is_counted(row) {
        return Some("-".into());
    }
    let has_error = |p: &&Value| p.get("validationError").is_some_and(|e| !e.is_null());
    Some(row.list(&["status", "pools"]).iter().filter(has_error).count().to_string().into())
}

fn pool_status(row: &Row<'_>) -> Option<Value> {
    let (count, shown) = (row.int(&["status", "poolCount"]), row.list(&["status", "pools"]).len() as i64);
    Some(match outcome(row).map(|c| c.str_at(&["type"])) {
        Some("Complete") if count > shown => format!("Complete ({shown}/{count} pools)").into(),
        Some(kind) => kind.into(),
        None => "Pending".into(),
    })
}

fn pool_completed(row: &Row<'_>) -> Option<Value> {
    let complete = outcome(row).filter(|c| c.str_at(&["type"]) == "Complete");
    let age = complete.map(|c| row.age(c.get("lastTransitionTime")).unwrap_or_else(|| Str::from("<unknown>")));
    Some(age.unwrap_or_else(|| "<none>".into()).into())
}
