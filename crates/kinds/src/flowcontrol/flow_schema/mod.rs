//! FlowSchemas.

pub mod validate;

use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, condition, int};
use kubelith_rules::sealed::status_only;
use kubelith_schema::lifecycle::Generation;
use std::cmp::Ordering;

pub const FLOW_SCHEMA: Kind = status_only(
    Kind {
        group: "flowcontrol.apiserver.k8s.io",
        plural: "flowschemas",
        rules: validate::RULES,
        cells: CELLS,
        ..Kind::PLAIN
    }
    .generation(Generation::Spec),
);

pub const CELLS: Cells = &[("flow_schema_dangling", |row| {
    Some(condition(row.conditions(), "Dangling").map_or("?", |c| c.str_at(&["status"])).into())
})];

/// Flow schemas are listed in the order in which requests meet them; all else as it comes.
pub fn flow_schema_order(a: &Value, b: &Value) -> Ordering {
    if a.str_at(&["kind"]) != "FlowSchema" {
        return Ordering::Equal;
    }
    let key = |v: &Value| int(v, &["spec", "matchingPrecedence"]);
    key(a).cmp(&key(b)).then_with(|| a.str_at(&["metadata", "name"]).cmp(b.str_at(&["metadata", "name"])))
}
