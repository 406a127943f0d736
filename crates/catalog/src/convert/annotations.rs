//! JSON inside of annotations: written with the keys in the order of the reference's structs, since clients see
//! the text, and read by the rules of typed decoding.

use crate::catalog::builtin;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::typed;
use kubelith_meta::Value;
use kubelith_schema::{Empties, Schema, Shape, TypedSchema, canonicalize};
use std::sync::Arc;

/// The order of an object's keys, and of those inside of its members. Keys that are not named follow, sorted.
pub struct Order(pub &'static [(&'static str, Order)]);

/// No order of its own: scalars and maps.
pub const PLAIN: Order = Order(&[]);

/// `value` as JSON text. Lists take the order for each of their elements.
pub fn to_json(value: &Value, order: &Order) -> String {
    let mut out = String::new();
    write(value, order, &mut out);
    out
}

fn write(value: &Value, order: &Order, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                write(item, order, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let named = order.0.iter().filter_map(|(key, inner)| Some((*key, map.get(key)?, inner)));
            let is_named = |key: &str| order.0.iter().any(|(k, _)| *k == key);
            let others = map.iter().filter(|(key, _)| !is_named(key)).map(|(key, value)| (key, value, &PLAIN));
            out.push('{');
            for (i, (key, value, inner)) in named.chain(others).enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                out.push_str(&json::to_string(&Value::from(key)));
                out.push(':');
                write(value, inner, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&json::to_string(scalar)),
    }
}

/// The list of `model` (an OpenAPI name) that the text holds; `None` if it holds anything else.
pub fn list_from_json(text: &str, model: &str) -> Option<Vec<Value>> {
    let table = &builtin().table;
    let item = Schema { shape: Shape::Named(table.find(model)?), ..Schema::default() };
    let root = Schema { shape: Shape::List(Box::new(item)), ..Schema::default() };
    match decode(text, root)? {
        Value::Array(items) => Some(items),
        Value::Null => Some(Vec::new()),
        _ => None,
    }
}

/// The `model` that the text holds.
pub fn object_from_json(text: &str, model: &str) -> Option<Value> {
    let root = Schema { shape: Shape::Named(builtin().table.find(model)?), ..Schema::default() };
    decode(text, root)
}

fn decode(text: &str, root: Schema) -> Option<Value> {
    let schema = TypedSchema { table: builtin().table.clone(), root: Arc::new(root) };
    let mut value = typed::decode(text.as_bytes(), &schema, Strictness::Lenient).ok()?.value;
    canonicalize(&schema.table, &schema.root, &mut value, Empties::Distinct);
    Some(value)
}
