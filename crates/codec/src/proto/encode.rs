//! Values to messages, and the JSON text that values would be read from. Values are taken to be type-correct, as the decoders
//! give them; what is not is written as if it were absent.

use super::MAX_DEPTH;
use super::source::{Form, Source};
use super::text::{InText, Order, Text};
use super::wire::{FIXED64, put_bytes, put_int, put_nested, put_tag};
use crate::base64;
use kubelith_meta::Value;
use kubelith_meta::time::{Duration, Time};
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
    encode_source(out, value, schema)
}

/// The same of a value wherever it is.
pub(super) fn encode_source<'v>(
    out: &mut Vec<u8>,
    root: impl Source<'v>,
    schema: &TypedSchema,
) -> Result<(), EncodeError> {
    let Some(ty) = schema.root_struct() else { return Err(EncodeError::NotMarshalable(String::new())) };
    if ty.proto.is_empty() && !ty.fields.is_empty() {
        let mut parts = ty.name.rsplit('.');
        let (name, package) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        return Err(EncodeError::NotMarshalable(format!("*{package}.{name}")));
    }
    let mut encoder = Encoder::new(&schema.table, 0);
    encoder.message(out, ty, Some(root));
    if encoder.too_deep { Err(EncodeError::TooDeep) } else { Ok(()) }
}

struct Encoder<'s, S> {
    table: &'s TypeTable,
    /// The values of the fields of the open structs, by field index. JSON orders fields by name and protobuf by
    /// number, so they are laid out once per struct.
    present: Vec<Option<S>>,
    depth: usize,
    too_deep: bool,
}

impl<'s, 'v, S: Source<'v>> Encoder<'s, S> {
    fn new(table: &'s TypeTable, depth: usize) -> Encoder<'s, S> {
        Encoder { table, present: Vec::with_capacity(64), depth, too_deep: false }
    }

    /// If `value` is an object that nobody has looked into, calls `encode` with its text, and returns true. It would have to be read
    /// otherwise, into values that are dropped with the object.
    fn with_text(
        &mut self,
        value: Option<S>,
        encode: impl for<'t> FnOnce(&mut Encoder<'s, InText<'t>>, InText<'t>),
    ) -> bool {
        let Some(text) = value.and_then(S::unread).and_then(|json| Text::read(json, Order::Names)) else {
            return false;
        };
        let mut encoder = Encoder::new(self.table, self.depth);
        encode(&mut encoder, text.root());
        self.too_deep |= encoder.too_deep;
        true
    }

    fn message(&mut self, out: &mut Vec<u8>, ty: &'s StructType, value: Option<S>) {
        if self.with_text(value, |encoder, text| encoder.message(out, ty, Some(text))) {
            return;
        }
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
    fn lay_out(&mut self, ty: &'s StructType, value: Option<S>) {
        let base = self.present.len();
        self.present.resize(base + ty.fields.len(), None);
        let Some(value) = value else { return };
        let (mut fields, is_sorted) = (ty.fields.in_order(value.len()), value.is_sorted());
        for (head, name, value) in value.members() {
            let found = if is_sorted { fields.find(head, name) } else { ty.fields.position(head, name) };
            if let Some(index) = found {
                self.present[base + index] = (value.form() != Form::Null).then_some(value);
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

    fn field(&mut self, out: &mut Vec<u8>, number: u32, field: &'s Field, value: Option<S>) {
        let (schema, form) = (&field.schema, value.map(S::form));
        match (&schema.shape, value) {
            // Most fields.
            (Shape::String, Some(value)) => put_bytes(out, number, value.as_str().unwrap_or("").as_bytes()),
            (Shape::List(item), Some(list)) if form == Some(Form::List) => match schema.boxed {
                true => put_nested(out, number, |out| self.items(out, 1, item, list)),
                false => self.items(out, number, item, list),
            },
            (Shape::Map(item), Some(map)) if form == Some(Form::Object) => self.map(out, number, item, map),
            (Shape::List(_) | Shape::Map(_), _) => {}
            _ => self.value(out, number, schema, value),
        }
    }

    fn map(&mut self, out: &mut Vec<u8>, number: u32, item: &'s Schema, map: S) {
        if self.with_text(Some(map), |encoder, text| encoder.map(out, number, item, text)) {
            return;
        }
        for (_, key, value) in map.members() {
            put_nested(out, number, |out| {
                put_bytes(out, 1, key.as_bytes());
                // A map of bytes leaves nil out; everything else has a value.
                if !(value.form() == Form::Null && matches!(item.shape, Shape::Bytes)) {
                    self.value(out, 2, item, Some(value));
                }
            });
        }
    }

    fn items(&mut self, out: &mut Vec<u8>, number: u32, item: &'s Schema, list: S) {
        for value in list.items() {
            self.value(out, number, item, Some(value));
        }
    }

    /// One value that is no list or map, unless it is a boxed one. `None` and null stand for zero.
    fn value(&mut self, out: &mut Vec<u8>, number: u32, schema: &'s Schema, value: Option<S>) {
        let text = || value.and_then(S::as_str).unwrap_or("");
        match &schema.shape {
            Shape::Bool => put_int(out, number, i64::from(value.and_then(S::as_bool).unwrap_or(false))),
            Shape::Int32 | Shape::Int64 => put_int(out, number, value.and_then(S::as_i64).unwrap_or(0)),
            Shape::Float => {
                put_tag(out, number, FIXED64);
                out.extend_from_slice(&value.and_then(S::as_f64).unwrap_or(0.0).to_le_bytes());
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
            Shape::Quantity => put_nested(out, number, |out| match value.and_then(S::as_i64) {
                Some(i) => put_bytes(out, 1, itoa::Buffer::new().format(i).as_bytes()),
                None => put_bytes(out, 1, Some(text()).filter(|s| !s.is_empty()).unwrap_or("0").as_bytes()),
            }),
            Shape::IntOrString => put_nested(out, number, |out| int_or_string(out, value)),
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json | Shape::Any => put_nested(out, number, |out| {
                if let Some(value) = value.filter(|v| v.form() != Form::Null) {
                    put_nested(out, 1, |out| value.write_json(out));
                }
            }),
            Shape::JsonSchemaOrBool(_) | Shape::JsonSchemaOrArray(_) | Shape::JsonSchemaOrStrings(_) => {
                put_nested(out, number, |out| self.schema_or_other(out, &schema.shape, value));
            }
            Shape::Named(id) => {
                let ty = self.table.get(*id);
                put_nested(out, number, |out| self.message(out, ty, value));
            }
            Shape::Struct(ty) => put_nested(out, number, |out| self.message(out, ty, value)),
            Shape::List(item) => put_nested(out, number, |out| {
                if let Some(list) = value {
                    self.items(out, 1, item, list);
                }
            }),
            // Maps have no value of their own in protobuf.
            Shape::Map(_) => {}
        }
    }

    /// Where a custom resource's schema may have another thing in place of a schema: each has a number of its own.
    fn schema_or_other(&mut self, out: &mut Vec<u8>, shape: &'s Shape, value: Option<S>) {
        let form = value.map(S::form);
        match shape {
            Shape::JsonSchemaOrBool(id) if form == Some(Form::Object) => {
                put_int(out, 1, 1);
                self.named(out, 2, *id, value);
            }
            Shape::JsonSchemaOrBool(_) => put_int(out, 1, i64::from(value.and_then(S::as_bool).unwrap_or(false))),
            Shape::JsonSchemaOrArray(id) | Shape::JsonSchemaOrStrings(id) if form == Some(Form::Object) => {
                self.named(out, 1, *id, value);
            }
            Shape::JsonSchemaOrArray(id) => {
                for schema in value.into_iter().flat_map(S::items) {
                    self.named(out, 2, *id, Some(schema));
                }
            }
            Shape::JsonSchemaOrStrings(_) => {
                for name in value.into_iter().flat_map(S::items) {
                    put_bytes(out, 2, name.as_str().unwrap_or("").as_bytes());
                }
            }
            _ => {}
        }
    }

    fn named(&mut self, out: &mut Vec<u8>, number: u32, id: TypeId, value: Option<S>) {
        let ty = self.table.get(id);
        put_nested(out, number, |out| self.message(out, ty, value));
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

fn int_or_string<'v>(out: &mut Vec<u8>, value: Option<impl Source<'v>>) {
    let (kind, int, text) = match value.and_then(Source::as_str) {
        Some(text) => (1, 0, text),
        None => (0, value.and_then(Source::as_i64).unwrap_or(0), ""),
    };
    put_int(out, 1, kind);
    put_int(out, 2, int);
    put_bytes(out, 3, text.as_bytes());
}
