//! APIServices.

use super::{CellFn, Row, condition};
use kubelith_meta::Value;

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "apiservice_service" => service,
        "apiservice_available" => available,
        _ => return None,
    })
}

/// Where the API is served: here, or by a service.
fn service(row: &Row<'_>) -> Option<Value> {
    let Some(service) = row.at(&["spec", "service"]) else { return Some("Local".into()) };
    Some(format!("{}/{}", service.str_at(&["namespace"]), service.str_at(&["name"])).into())
}

fn available(row: &Row<'_>) -> Option<Value> {
    let Some(condition) = condition(row.conditions(), "Available") else { return Some("Unknown".into()) };
    Some(match (condition.str_at(&["status"]), condition.str_at(&["reason"])) {
        (status, reason) if status == "True" || reason.is_empty() => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    })
}
