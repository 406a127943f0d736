//! Cells of tables that no path gives: functions of the layer above.

use kubelith_meta::Value;
use kubelith_meta::time::Time;
use kubelith_schema::Column;
use std::cmp::Ordering;

/// Computed cells, by name.
pub trait Cells: Send + Sync + 'static {
    /// `arguments` are what the column's paths lead to. `None` if the function has nothing to say.
    fn cell(&self, function: &str, object: &Value, arguments: &[Option<&Value>], now: Time) -> Option<Value>;

    /// What a column shows of the value that its path leads to.
    fn path_cell(&self, column: &Column, value: &Value, now: Time) -> Value {
        kubelith_schema::jsonpath::cell(&column.kind, value, now)
    }

    /// Conditions of the row, which clients show by how they print it.
    fn row_conditions(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// Annotations that stand for fields of the object: views of its metadata do not have them.
    fn field_annotations(&self, _object: &Value) -> &'static [&'static str] {
        &[]
    }

    /// The order of rows where it is not that of the list.
    fn compare(&self, _a: &Value, _b: &Value) -> Ordering {
        Ordering::Equal
    }
}

/// No computed cells.
pub struct NoCells;

impl Cells for NoCells {
    fn cell(&self, _: &str, _: &Value, _: &[Option<&Value>], _: Time) -> Option<Value> {
        None
    }
}
