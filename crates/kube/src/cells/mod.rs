//! Cells of tables that no path gives, by the names that the catalogue calls them.

use kubelith_meta::Value;
use kubelith_meta::time::Time;
use kubelith_server::table::{self, Cells};

/// The cell functions of the built-in kinds.
pub struct BuiltinCells;

impl Cells for BuiltinCells {
    fn cell(&self, function: &str, _object: &Value, arguments: &[Option<&Value>], now: Time) -> Option<Value> {
        let first = arguments.first().copied().flatten();
        match function {
            "age" => Some(Value::String(table::age(first?.as_str()?, now))),
            _ => None,
        }
    }
}
