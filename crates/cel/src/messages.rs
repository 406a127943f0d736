//! The well-known messages of protocol buffers, which expressions can write: `google.protobuf.Int64Value{value: 1}`.

use crate::value::{EvalError, Map, Res, Timestamp, Val};
use std::sync::Arc;

pub fn make<'a>(name: &str, fields: Vec<(Arc<str>, Val<'a>)>) -> Res<'a> {
    let field = |name: &str| fields.iter().find(|(field, _)| **field == *name).map(|(_, v)| v.clone());
    let int = |name: &str| field(name).and_then(|v| v.as_int()).unwrap_or(0);
    let value = |zero: Val<'a>| field("value").unwrap_or(zero);
    let overflow =
        || Err(EvalError::new(format!("field type conversion error for {name}.value value type: integer overflow")));
    Ok(match name {
        "google.protobuf.BoolValue" => value(Val::Bool(false)),
        "google.protobuf.Int64Value" => value(Val::Int(0)),
        "google.protobuf.UInt64Value" => value(Val::Uint(0)),
        "google.protobuf.DoubleValue" => value(Val::Double(0.0)),
        "google.protobuf.StringValue" => value(Val::Str("")),
        "google.protobuf.BytesValue" => value(Val::Bytes(b"")),
        "google.protobuf.Int32Value" => match value(Val::Int(0)) {
            Val::Int(i) if i32::try_from(i).is_err() => return overflow(),
            other => other,
        },
        "google.protobuf.UInt32Value" => match value(Val::Uint(0)) {
            Val::Uint(u) if u32::try_from(u).is_err() => return overflow(),
            other => other,
        },
        "google.protobuf.FloatValue" => match value(Val::Double(0.0)) {
            Val::Double(d) => Val::Double(f64::from(d as f32)),
            other => other,
        },
        "google.protobuf.Timestamp" => Val::Timestamp(Timestamp::utc(int("seconds"), int("nanos") as u32)),
        "google.protobuf.Duration" => {
            Val::Duration(int("seconds").saturating_mul(1_000_000_000).saturating_add(int("nanos")))
        }
        "google.protobuf.ListValue" => field("values").unwrap_or_else(|| Val::flat([])),
        "google.protobuf.Struct" => field("fields").unwrap_or_else(|| Val::Map(Arc::new(Map::with_capacity(0)))),
        "google.protobuf.Value" => match fields.first() {
            Some((_, value)) => value.clone(),
            None => Val::Null,
        },
        _ => return Err(EvalError::fixed("unsupported conversion to ref.Val: (*dynamicpb.Message)")),
    })
}
