//! A field given twice: Go decodes the second value into the first.

use kubelith_meta::Value;
use kubelith_schema::{Schema, Shape, TypeTable};

/// Deeper repetitions replace instead; only made-up input has them.
const MAX_DEPTH: usize = 64;

/// Structs are merged field by field, lists element by element (and cut to the new length), maps keep the keys
/// that the second value does not have; everything else is replaced.
pub(super) fn merge(table: &TypeTable, schema: &Schema, old: &mut Value, new: Value) {
    merge_at(table, schema, old, new, 0);
}

fn merge_at(table: &TypeTable, schema: &Schema, old: &mut Value, new: Value, depth: usize) {
    if depth >= MAX_DEPTH {
        *old = new;
        return;
    }
    if let Some(ty) = table.resolve(schema)
        && let Value::Object(old) = old
    {
        let Value::Object(new) = new else { return };
        for (name, value) in new {
            match (ty.field(&name), old.get_mut(&name)) {
                (Some(field), Some(before)) => merge_at(table, &field.schema, before, value, depth + 1),
                _ => {
                    old.insert(name, value);
                }
            }
        }
        return;
    }
    match (&schema.shape, old, new) {
        (Shape::Map(_), Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                old.insert(key, value);
            }
        }
        (Shape::List(item), Value::Array(old), Value::Array(new)) => {
            old.truncate(new.len());
            for (i, value) in new.into_iter().enumerate() {
                match old.get_mut(i) {
                    Some(before) => merge_at(table, item, before, value, depth + 1),
                    None => old.push(value),
                }
            }
        }
        (_, old, new) => *old = new,
    }
}
