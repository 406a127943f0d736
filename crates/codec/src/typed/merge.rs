//! A field given twice: Go decodes the second value into the first.

use kubelith_meta::{Key, Map, Value};
use kubelith_schema::{Schema, Shape, StructType, TypeTable};

/// Deeper repetitions replace instead, and so do longer ones of lists; only made-up input has them.
const MAX_DEPTH: usize = 64;
const MAX_LISTS: usize = 100;

/// Makes a struct of members some of which are there more than once, in the order in which they were given. A null
/// among them empties what came before it.
pub(super) fn members(table: &TypeTable, ty: &StructType, members: Vec<(Key, Value)>) -> Map {
    merge_members(table, ty, members, 0)
}

fn merge_members(table: &TypeTable, ty: &StructType, mut members: Vec<(Key, Value)>, depth: usize) -> Map {
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let mut merged = Vec::with_capacity(ty.fields.len().min(members.len()));
    let mut rest = members.into_iter().peekable();
    while let Some((name, first)) = rest.next() {
        let mut values = Vec::new();
        let mut next = Some(first);
        while let Some(value) = next {
            if value.is_null() {
                values.clear();
            } else {
                values.push(value);
            }
            next = rest.next_if(|(next, _)| *next == name).map(|(_, value)| value);
        }
        let value = match ty.field(&name) {
            Some(field) if values.len() > 1 => merge(table, &field.schema, values, depth),
            _ => values.pop(),
        };
        if let Some(value) = value {
            merged.push((name, value));
        }
    }
    Map::from_unsorted(merged)
}

/// Structs are merged field by field, lists element by element (and cut to the new length), maps keep the keys that
/// later values do not have; everything else is replaced. All at once, so that many repetitions cost no more than one.
fn merge(table: &TypeTable, schema: &Schema, mut values: Vec<Value>, depth: usize) -> Option<Value> {
    if depth >= MAX_DEPTH {
        return values.pop();
    }
    let all = |values: Vec<Value>| -> Vec<(Key, Value)> {
        let maps = values.into_iter().filter_map(|v| if let Value::Object(m) = v { Some(m) } else { None });
        maps.flatten().map(|(name, value)| (Key::new(name), value)).collect()
    };
    if let Some(ty) = table.resolve(schema) {
        return Some(Value::Object(merge_members(table, ty, all(values), depth + 1)));
    }
    match &schema.shape {
        Shape::Map(_) => Some(Value::Object(Map::from_unsorted(all(values)))),
        Shape::List(item) if values.len() <= MAX_LISTS => {
            values.into_iter().reduce(|old, new| merge_lists(table, item, old, new, depth))
        }
        _ => values.pop(),
    }
}

fn merge_lists(table: &TypeTable, item: &Schema, old: Value, new: Value, depth: usize) -> Value {
    let (Value::Array(old), Value::Array(new)) = (old, new) else { return Value::Array(Vec::new()) };
    let mut old = old.into_iter();
    let elements = new.into_iter().map(|element| match old.next() {
        Some(before) => merge(table, item, vec![before, element], depth + 1).unwrap_or_default(),
        None => element,
    });
    Value::Array(elements.collect())
}
