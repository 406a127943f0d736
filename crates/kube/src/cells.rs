//! Cells of the tables of built-in kinds.

use kubelith_handlers::cells::Cells;
use kubelith_kinds::{Kinds, flow_schema_order};
use kubelith_meta::Value;
use kubelith_meta::time::Time;
use kubelith_pods::cells::completion;
use kubelith_rules::annotations;
use kubelith_rules::cells::{CellFn, Row};
use kubelith_schema::Column;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The cell functions of kinds, by name.
pub struct KindCells(HashMap<&'static str, CellFn>);

impl KindCells {
    pub fn new(kinds: Kinds) -> KindCells {
        KindCells(kubelith_kinds::cells(kinds).collect())
    }
}

impl Cells for KindCells {
    fn cell(&self, function: &str, object: &Value, arguments: &[Option<&Value>], now: Time) -> Option<Value> {
        (self.0.get(function)?)(&Row { object, arguments, now })
    }

    /// As it is: the reference prints fields of built-in objects without regard to the column's type.
    fn path_cell(&self, _column: &Column, value: &Value, _now: Time) -> Value {
        value.clone()
    }

    fn row_conditions(&self, object: &Value) -> Option<Value> {
        completion(object)
    }

    fn field_annotations(&self, object: &Value) -> &'static [&'static str] {
        match (object.str_at(&["apiVersion"]), object.str_at(&["kind"])) {
            ("apps/v1", "DaemonSet") => &[annotations::TEMPLATE_GENERATION],
            ("apps/v1", "Deployment") => &[annotations::ROLLBACK_TO],
            ("autoscaling/v1", "HorizontalPodAutoscaler") => &annotations::AUTOSCALER,
            _ => &[],
        }
    }

    fn compare(&self, a: &Value, b: &Value) -> Ordering {
        flow_schema_order(a, b)
    }
}

#[cfg(test)]
mod tests;
