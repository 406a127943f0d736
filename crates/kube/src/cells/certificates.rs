//! Requests for certificates.

use super::{CellFn, Row};
use kubelith_meta::Value;
use kubelith_meta::time::{Duration, human_duration};

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "csr_condition" => csr_condition,
        "csr_requested_duration" => requested_duration,
        "pod_certificate_state" => pod_certificate_state,
        _ => return None,
    })
}

/// `Approved,Issued`.
fn csr_condition(row: &Row<'_>) -> Option<Value> {
    let has = |kind| super::condition(row.conditions(), kind).is_some();
    let mut status = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !row.text(&["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    Some(status.into())
}

fn requested_duration(row: &Row<'_>) -> Option<Value> {
    let seconds = row.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64);
    Some(seconds.map_or_else(|| "<none>".to_owned(), |s| human_duration(Duration::from_secs(s))).into())
}

/// The last of the conditions decides; they exclude each other.
fn pod_certificate_state(row: &Row<'_>) -> Option<Value> {
    let mut kinds = row.conditions().iter().map(|c| c.str_at(&["type"]));
    Some(kinds.rfind(|kind| matches!(*kind, "Issued" | "Denied" | "Failed")).unwrap_or("Pending").into())
}
