//! Cells of volumes, some of which claims have, too.

use kubelith_meta::Value;
use kubelith_rules::cells::{Cells, Row, joined, strings};

pub const CELLS: Cells = &[
    ("volume_phase", |row| Some(if row.is_deleted() { "Terminating" } else { row.text(&["status", "phase"]) }.into())),
    ("volume_capacity", |row| Some(amount(row, &["spec", "capacity", "storage"]))),
    ("volume_access_modes", |row| Some(access_modes(row.list(&["spec", "accessModes"])).into())),
    ("volume_claim", volume_claim),
    ("storage_class", storage_class),
];

/// An amount that is not there is nothing.
pub fn amount(row: &Row<'_>, path: &[&str]) -> Value {
    row.at(path).cloned().unwrap_or_else(|| "0".into())
}

/// In a fixed order, whatever the order they are given in.
pub fn access_modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    joined(SHORT.iter().filter(|(long, _)| strings(modes).any(|m| m == *long)).map(|(_, short)| *short), ",")
}

fn volume_claim(row: &Row<'_>) -> Option<Value> {
    let claim = row.at(&["spec", "claimRef"])?;
    Some(format!("{}/{}", claim.str_at(&["namespace"]), claim.str_at(&["name"])).into())
}

/// An annotation of old names the class before the field does.
fn storage_class(row: &Row<'_>) -> Option<Value> {
    let annotation = row.at(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    annotation.or_else(|| row.at(&["spec", "storageClassName"])).cloned()
}
