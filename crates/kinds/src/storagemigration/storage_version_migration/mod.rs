//! StorageVersionMigrations.

pub mod validate;

use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row, holds};
use kubelith_rules::sealed::sealed;

pub const STORAGE_VERSION_MIGRATION: Kind = sealed(
    Kind {
        group: "storagemigration.k8s.io",
        plural: "storageversionmigrations",
        rules: validate::RULES,
        cells: CELLS,
        ..Kind::PLAIN
    }
    .guarded(),
);

pub const CELLS: Cells = &[("migration_resource", migration_resource), ("migration_status", migration_status)];

fn migration_resource(row: &Row<'_>) -> Option<Value> {
    let (group, resource) = (row.text(&["spec", "resource", "group"]), row.text(&["spec", "resource", "resource"]));
    Some(if group.is_empty() { resource.into() } else { format!("{resource}.{group}").into() })
}

/// The last condition that holds and means something.
fn migration_status(row: &Row<'_>) -> Option<Value> {
    let mut holding = row.conditions().iter().filter(|c| holds(c)).map(|c| c.str_at(&["type"]));
    let last = holding.rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    Some(last.unwrap_or("Unknown").into())
}
