//! What is used of what there is.

use kubelith_meta::Value;
use kubelith_rules::cells::{Cells, Row};

pub const CELLS: Cells = &[
    ("quota_requests", |row| Some(quota(row, QuotaColumn::Requests).into())),
    ("quota_limits", |row| Some(quota(row, QuotaColumn::Limits).into())),
];

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
