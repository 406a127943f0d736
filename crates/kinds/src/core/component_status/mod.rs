//! Component statuses, which are asked for when they are read.

use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row, condition, holds};

pub const COMPONENT_STATUS: Kind = Kind { group: "", plural: "componentstatuses", cells: CELLS, ..Kind::PLAIN };

pub const CELLS: Cells = &[
    ("component_status", |row| {
        Some(match healthy(row) {
            Some(condition) if holds(condition) => "Healthy".into(),
            Some(_) => "Unhealthy".into(),
            None => "Unknown".into(),
        })
    }),
    ("component_message", |row| Some(healthy(row)?.str_at(&["message"]).into())),
    ("component_error", |row| Some(healthy(row)?.str_at(&["error"]).into())),
];

fn healthy<'a>(row: &Row<'a>) -> Option<&'a Value> {
    condition(row.list(&["conditions"]), "Healthy")
}
