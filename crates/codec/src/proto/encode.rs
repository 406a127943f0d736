//! Values to messages. Values are taken to be type-correct, as the decoders give them; what is not is written as
//! if it were absent.

use super::MAX_DEPTH;
use super::wire::{FIXED64, put_bytes, put_int, put_nested, put_tag};
use crate::base64;
use crate::json;
use kubelith_meta::time::{Duration, Time};
use kubelith_meta::{Map, Value};
use kubelith_schema::{Field, ProtoSlot, Schema, Shape, StructType, TypeId, TypeTable, TypedSchema};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncodeError {
    /// The type has no protobuf form; Go's name of it.
    NotMarshalable(String),
    TooDeep,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::NotMarshalable(name) => write!(
                f,
                "object {name} does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
            ),
            EncodeError::TooDeep => f.write_str("proto: exceeded max depth"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Appends the message of `value`, without an envelope.
pub fn encode(out: &mut Vec<u8>, value: &Value, schema: &TypedSchema) -> Result<(), EncodeError> {
    let Some(ty) = schema.root_struct() else { return Err(EncodeError::NotMarshalable(String::new())) };
    if ty.proto.is_empty() && !ty.fields.is_empty() {
        let mut parts = ty.name.rsplit('.');
        let (name, package) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        return Err(EncodeError::NotMarshalable(format!("*{package}.{name}")));
    }
    let mut encoder = Encoder { table: &schema.table, present: Vec::with_capacity(64), depth: 0, too_deep: false };
    encoder.message(out, ty, value.as_object());
    if encoder.too_deep { Err(EncodeError::TooDeep) } else { Ok(()) }
}

struct Encoder<'v, 's> {
    table: &'s TypeTable,
    /// The values of the fields of the open structs, by field index. JSON orders fields by name and protobuf by
    /// number, so they are laid out once per struct.
    present: Vec<Option<&'v Value>>,
    depth: usize,
    too_deep: bool,
}

impl<'v, 's> Encoder<'v, 's> {
    fn message(&mut self, out: &mut Vec<u8>, ty: &'s StructType, value: Option<&'v Map>) {
        if self.depth >= MAX_DEPTH {
            self.too_deep = true;
            return;
        }
        self.depth += 1;
        let base = self.present.len();
        self.lay_out(ty, value);
        self.slots(out, ty, &ty.proto, base);
        self.present.truncate(base);
        self.depth -= 1;
    }

    /// Both fields and members are sorted by name.
    fn lay_out(&mut self, ty: &'s StructType, value: Option<&'v Map>) {
        let base = self.present.len();
        self.present.resize(base + ty.fields.len(), None);
        let Some(value) = value else { return };
        let mut fields = ty.fields.in_order(value.len());
        for (key, value) in value.entries() {
            if let Some(index) = fields.find(key.head(), key) {
                self.present[base + index] = (!value.is_null()).then_some(value);
            }
        }
    }

    fn slots(&mut self, out: &mut Vec<u8>, ty: &'s StructType, slots: &'s [ProtoSlot], base: usize) {
        for slot in slots {
            match slot {
                ProtoSlot::Field { number, field } => {
                    let index = usize::from(*field);
                    match self.present[base + index] {
                        None if ty.fields.is_nilable(index) => {}
                        value => self.field(out, *number, &ty.fields[index], value),
                    }
                }
                ProtoSlot::Inline { number, slots } => put_nested(out, *number, |out| self.slots(out, ty, slots, base)),
            }
        }
    }

    fn field(&mut self, out: &mut Vec<u8>, number: u32, field: &'s Field, value: Option<&'v Value>) {
        match (&field.schema.shape, value) {
            // Most fields.
            (Shape::String, Some(Value::String(text))) => put_bytes(out, number, text.as_bytes()),
            (Shape::List(item), Some(Value::Array(items))) if field.schema.boxed => {
                put_nested(out, number, |out| self.items(out, 1, item, items));
            }
            (Shape::List(item), Some(Value::Array(items))) => self.items(out, number, item, items),
            (Shape::Map(item), Some(Value::Object(members))) => {
                for (key, value) in members.iter() {
                    put_nested(out, number, |out| {
                        put_bytes(out, 1, key.as_bytes());
                        // A map of bytes leaves nil out; everything else has a value.
                        if !(value.is_null() && matches!(item.shape, Shape::Bytes)) {
                            self.value(out, 2, item, Some(value));
                        }
                    });
                }
            }
            (Shape::List(_) | Shape::Map(_), _) => {}
            _ => self.value(out, number, &field.schema, value),
        }
    }

    fn items(&mut self, out: &mut Vec<u8>, number: u32, item: &'s Schema, items: &'v [Value]) {
        for value in items {
            self.value(out, number, item, Some(value));
        }
    }

    /// One value that is no list or map, unless it is a boxed one. `None` and null stand for zero.
    fn value(&mut self, out: &mut Vec<u8>, number: u32, schema: &'s Schema, value: Option<&'v Value>) {
        let text = || value.and_then(Value::as_str).unwrap_or("");
        match &schema.shape {
            Shape::Bool => put_int(out, number, i64::from(value.and_then(Value::as_bool).unwrap_or(false))),
            Shape::Int32 | Shape::Int64 => put_int(out, number, value.and_then(Value::as_i64).unwrap_or(0)),
            Shape::Float => {
                put_tag(out, number, FIXED64);
                out.extend_from_slice(&value.and_then(Value::as_f64).unwrap_or(0.0).to_le_bytes());
            }
            Shape::String => put_bytes(out, number, text().as_bytes()),
            Shape::Bytes => put_bytes(out, number, &base64::decode(text()).unwrap_or_default()),
            Shape::Time => put_nested(out, number, |out| timestamp(out, text(), Precision::Seconds)),
            Shape::MicroTime => {
                put_nested(out, number, |out| timestamp(out, text(), Precision::Microseconds));
            }
            Shape::Duration => {
                let nanos = Duration::parse(text()).map_or(0, Duration::as_nanos);
                put_nested(out, number, |out| put_int(out, 1, nanos));
            }
            Shape::Quantity => put_nested(out, number, |out| match value {
                Some(Value::Int(i)) => put_bytes(out, 1, itoa::Buffer::new().format(*i).as_bytes()),
                _ => put_bytes(out, 1, Some(text()).filter(|s| !s.is_empty()).unwrap_or("0").as_bytes()),
            }),
            Shape::IntOrString => put_nested(out, number, |out| int_or_string(out, value)),
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json | Shape::Any => put_nested(out, number, |out| {
                if let Some(value) = value.filter(|v| !v.is_null()) {
                    put_nested(out, 1, |out| json::write(out, value));
                }
            }),
            Shape::JsonSchemaOrBool(id) => put_nested(out, number, |out| match value {
                Some(Value::Object(schema)) => {
                    put_int(out, 1, 1);
                    self.named(out, 2, *id, schema);
                }
                other => put_int(out, 1, i64::from(other.and_then(Value::as_bool).unwrap_or(false))),
            }),
            Shape::JsonSchemaOrArray(id) => put_nested(out, number, |out| match value {
                Some(Value::Object(schema)) => self.named(out, 1, *id, schema),
                Some(Value::Array(schemas)) => {
                    let table = self.table;
                    for schema in schemas {
                        put_nested(out, 2, |out| self.message(out, table.get(*id), schema.as_object()));
                    }
                }
                _ => {}
            }),
            Shape::JsonSchemaOrStrings(id) => put_nested(out, number, |out| match value {
                Some(Value::Object(schema)) => self.named(out, 1, *id, schema),
                Some(Value::Array(names)) => {
                    for name in names {
                        put_bytes(out, 2, name.as_str().unwrap_or("").as_bytes());
                    }
                }
                _ => {}
            }),
            Shape::Named(id) => {
                let ty = self.table.get(*id);
                put_nested(out, number, |out| self.message(out, ty, value.and_then(Value::as_object)));
            }
            Shape::Struct(ty) => {
                put_nested(out, number, |out| self.message(out, ty, value.and_then(Value::as_object)));
            }
            Shape::List(item) => put_nested(out, number, |out| {
                self.items(out, 1, item, value.and_then(Value::as_array).unwrap_or_default());
            }),
            // Maps have no value of their own in protobuf.
            Shape::Map(_) => {}
        }
    }

    fn named(&mut self, out: &mut Vec<u8>, number: u32, id: TypeId, value: &'v Map) {
        let ty = self.table.get(id);
        put_nested(out, number, |out| self.message(out, ty, Some(value)));
    }
}

#[derive(Clone, Copy)]
enum Precision {
    Seconds,
    Microseconds,
}

/// The zero time is an empty message, and so is none.
fn timestamp(out: &mut Vec<u8>, text: &str, precision: Precision) {
    // The error about an empty text would take longer than reading a time.
    let time = Some(text).filter(|t| !t.is_empty()).and_then(|t| Time::parse(t).ok());
    let Some(time) = time.filter(|t| !t.is_zero()) else { return };
    put_int(out, 1, time.unix_seconds());
    let nanos = match precision {
        Precision::Seconds => 0,
        Precision::Microseconds => time.subsec_nanos() / 1000 * 1000,
    };
    put_int(out, 2, i64::from(nanos));
}

fn int_or_string(out: &mut Vec<u8>, value: Option<&Value>) {
    let (kind, int, text) = match value {
        Some(Value::String(s)) => (1, 0, s.as_str()),
        other => (0, other.and_then(Value::as_i64).unwrap_or(0), ""),
    };
    put_int(out, 1, kind);
    put_int(out, 2, int);
    put_bytes(out, 3, text.as_bytes());
}
