//! Messages to values, in one pass. Nothing is allocated for a length that is only claimed.

use super::MAX_DEPTH;
use super::names;
use super::wire::{BYTES, FIXED64, Reader, Tag, VARINT, WireError};
use crate::base64;
use crate::error::DecodeError;
use crate::json;
use kubelith_meta::quantity::Quantity;
use kubelith_meta::time::{Duration, Time};
use kubelith_meta::{Key, Map, Str, Value};
use kubelith_schema::{Field, Omit, ProtoSlot, Schema, Shape, StructType, TypeId, TypeTable, TypedSchema};

type Result<T> = std::result::Result<T, DecodeError>;

/// Reads a message without an envelope. Unknown fields are dropped. Zero values of fields that JSON leaves out
/// then are absent; fields that JSON always has may be absent, too: `schema::canonical` adds them.
pub fn decode(message: &[u8], schema: &TypedSchema) -> Result<Value> {
    let Some(ty) = schema.root_struct() else { return Err(DecodeError::malformed("not a message")) };
    let mut decoder = Decoder { table: &schema.table, building: Vec::with_capacity(64), seen: 0, depth: 0, merged: 0 };
    decoder.message(Reader::new(message), ty)
}

struct Decoder<'s> {
    table: &'s TypeTable,
    /// The fields of the open messages by index, innermost last.
    building: Vec<(u16, Part)>,
    /// Which fields of the innermost message are among them, as far as there are bits for it.
    seen: u64,
    depth: usize,
    merged: usize,
}

/// Messages that are given again after they were given once. No encoder does that; merging without end would take
/// time that grows with the square of the input.
const MAX_MERGED: usize = 100;

/// A field's value so far.
enum Part {
    One(Value),
    List(Vec<Value>),
    Map(Vec<(Key, Value)>),
}

impl<'s> Decoder<'s> {
    fn message(&mut self, reader: Reader<'_>, ty: &'s StructType) -> Result<Value> {
        if self.depth >= MAX_DEPTH {
            return Err(WireError::TooDeep.into());
        }
        self.depth += 1;
        let base = self.building.len();
        let outer = std::mem::take(&mut self.seen);
        self.fields(reader, ty, &ty.proto, base)?;
        let value = self.close(ty, base);
        self.seen = outer;
        self.depth -= 1;
        Ok(value)
    }

    /// Makes an object of the fields from `base` on. Field indices are in the order of their names.
    fn close(&mut self, ty: &StructType, base: usize) -> Value {
        let parts = &mut self.building[base..];
        if !parts.is_sorted_by_key(|(index, _)| *index) {
            parts.sort_by_key(|(index, _)| *index);
        }
        let mut members = Vec::with_capacity(parts.len());
        for (index, part) in self.building.drain(base..) {
            let value = match part {
                Part::One(value) => value,
                Part::List(items) => Value::Array(items),
                Part::Map(entries) => Value::Object(Map::from_unsorted(entries)),
            };
            members.push((ty.fields.key(usize::from(index)), value));
        }
        Value::Object(Map::from_unsorted(members))
    }

    fn fields(&mut self, mut r: Reader<'_>, ty: &'s StructType, slots: &'s [ProtoSlot], base: usize) -> Result<()> {
        // Fields mostly come in the order of their numbers: the search begins where the last one ended.
        let mut next = 0;
        while let Some(tag) = r.tag(|| names::message(ty))? {
            match find(slots, &mut next, tag.number) {
                None => r.skip(tag.wire_type)?,
                Some(ProtoSlot::Inline { slots, .. }) => {
                    if tag.wire_type != BYTES {
                        return Err(wrong_type(tag, "inline".into()));
                    }
                    self.fields(Reader::new(r.bytes()?), ty, slots, base)?;
                }
                Some(ProtoSlot::Field { field, .. }) => self.field(&mut r, tag, ty, *field, base)?,
            }
        }
        Ok(())
    }

    fn field(&mut self, r: &mut Reader<'_>, tag: Tag, ty: &'s StructType, index: u16, base: usize) -> Result<()> {
        let field = &ty.fields[usize::from(index)];
        match &field.schema.shape {
            Shape::List(item) if !field.schema.boxed => {
                if tag.wire_type == BYTES && matches!(item.shape, Shape::Int32 | Shape::Int64 | Shape::Bool) {
                    return self.packed(r, item, index, base);
                }
                expect(tag, item, ty, field)?;
                let value = match item.shape {
                    Shape::String => Value::String(text(r.bytes()?)),
                    _ => self.value(r, item)?,
                };
                self.list(index, base).push(value);
            }
            Shape::Map(item) => {
                if tag.wire_type != BYTES {
                    return Err(wrong_type(tag, names::field(ty, field)));
                }
                let entry = self.entry(Reader::new(r.bytes()?), item, ty)?;
                self.map(index, base).push(entry);
            }
            // Most fields are one of these, and there once: they go where they belong without being passed around.
            Shape::String if tag.wire_type == BYTES && self.is_new(index) => {
                let bytes = r.bytes()?;
                if !bytes.is_empty() || is_printed_empty(field) {
                    self.begin(index, Part::One(Value::String(text(bytes))));
                }
            }
            shape @ (Shape::Bool | Shape::Int32 | Shape::Int64) if tag.wire_type == VARINT && self.is_new(index) => {
                let value = number(shape, r.varint()?);
                if is_printed_empty(field) || !is_zero(&value) {
                    self.begin(index, Part::One(value));
                }
            }
            _ => {
                expect(tag, &field.schema, ty, field)?;
                let value = self.value(r, &field.schema)?;
                self.one(index, base, field, value)?;
            }
        }
        Ok(())
    }

    /// Whether a field of the innermost message is certainly not there yet.
    fn is_new(&self, index: u16) -> bool {
        bit(index) != 0 && self.seen & bit(index) == 0
    }

    /// Sets a single value. A message given twice is merged, as protobuf has it.
    fn one(&mut self, index: u16, base: usize, field: &Field, value: Value) -> Result<()> {
        let absent = value.is_null() || (!is_printed_empty(field) && is_zero(&value));
        match self.position(index, base) {
            Some(i) => {
                self.merged += 1;
                if self.merged > MAX_MERGED {
                    return Err(DecodeError::malformed("proto: too many repeated messages"));
                }
                if let Part::One(before) = &mut self.building[i].1 {
                    merge(before, value);
                }
            }
            None if absent => {}
            None => self.begin(index, Part::One(value)),
        }
        Ok(())
    }

    fn list(&mut self, index: u16, base: usize) -> &mut Vec<Value> {
        let i = self.position(index, base).unwrap_or_else(|| {
            self.begin(index, Part::List(Vec::new()));
            self.building.len() - 1
        });
        match &mut self.building[i].1 {
            Part::List(items) => items,
            _ => unreachable!("a list field has a list"),
        }
    }

    fn map(&mut self, index: u16, base: usize) -> &mut Vec<(Key, Value)> {
        let i = self.position(index, base).unwrap_or_else(|| {
            self.begin(index, Part::Map(Vec::new()));
            self.building.len() - 1
        });
        match &mut self.building[i].1 {
            Part::Map(entries) => entries,
            _ => unreachable!("a map field has a map"),
        }
    }

    fn begin(&mut self, index: u16, part: Part) {
        self.seen |= bit(index);
        self.building.push((index, part));
    }

    /// Where a field of the innermost message stands. It was mostly the last one, or is new.
    fn position(&self, index: u16, base: usize) -> Option<usize> {
        if self.is_new(index) {
            return None;
        }
        self.building[base..].iter().rposition(|(i, _)| *i == index).map(|i| base + i)
    }

    fn packed(&mut self, r: &mut Reader<'_>, item: &Schema, index: u16, base: usize) -> Result<()> {
        let mut r = Reader::new(r.bytes()?);
        let items = self.list(index, base);
        while !r.is_empty() {
            let n = r.varint()?;
            items.push(number(&item.shape, n));
        }
        Ok(())
    }

    /// A key and its value; either may be missing.
    fn entry(&mut self, mut r: Reader<'_>, item: &'s Schema, ty: &StructType) -> Result<(Key, Value)> {
        let mut key = Str::default();
        let mut value = None;
        // The reference's loop over an entry knows neither group ends nor bad numbers.
        while let Some(tag) = r.tag(|| names::message(ty))? {
            match tag.number {
                1 => key = text(r.bytes()?),
                2 if tag.wire_type == wire_type(item) => value = Some(self.value(&mut r, item)?),
                _ => r.skip(tag.wire_type)?,
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.zero(item)?,
        };
        Ok((Key::new(key), value))
    }

    fn zero(&mut self, schema: &'s Schema) -> Result<Value> {
        match &schema.shape {
            Shape::Bool => Ok(Value::Bool(false)),
            Shape::Int32 | Shape::Int64 => Ok(Value::Int(0)),
            Shape::Float => Ok(Value::Int(0)),
            Shape::String => Ok("".into()),
            Shape::Bytes => Ok(Value::Null),
            // The zero of everything else is what an empty message reads as.
            _ => self.value(&mut Reader::new(&[0]), schema),
        }
    }

    /// One value whose wire type is known to be right.
    fn value(&mut self, r: &mut Reader<'_>, schema: &'s Schema) -> Result<Value> {
        match &schema.shape {
            shape @ (Shape::Bool | Shape::Int32 | Shape::Int64) => Ok(number(shape, r.varint()?)),
            Shape::Float => Ok(json::stored_form(f64::from_bits(r.fixed64()?))),
            Shape::String => Ok(Value::String(text(r.bytes()?))),
            Shape::Bytes => Ok(base64::encode(r.bytes()?).into()),
            Shape::Time => Ok(timestamp(r.bytes()?)?.map_or(Value::Null, |(seconds, _)| {
                let time = Time::from_unix(seconds);
                if time.is_zero() { Value::Null } else { time.rfc3339().into() }
            })),
            Shape::MicroTime => Ok(timestamp(r.bytes()?)?.map_or(Value::Null, |(seconds, nanos)| {
                let time = Time::from_unix_nanos(seconds, i64::from(nanos / 1000 * 1000));
                if time.is_zero() { Value::Null } else { time.rfc3339_micro().into() }
            })),
            Shape::Duration => {
                let nanos = single(r.bytes()?, 1, VARINT, "Duration", |r| r.varint())?.unwrap_or(0);
                Ok(Duration::from_nanos(nanos as i64).to_string().into())
            }
            Shape::Quantity => quantity(r.bytes()?),
            Shape::IntOrString => int_or_string(r.bytes()?),
            Shape::FieldsV1 => match single(r.bytes()?, 1, BYTES, "Raw", |r| r.bytes())? {
                None | Some([]) => Ok(Value::Null),
                Some(raw) => json::raw(raw).map_err(DecodeError::from),
            },
            Shape::RawExtension | Shape::Json | Shape::Any => {
                match single(r.bytes()?, 1, BYTES, "Raw", |r| r.bytes())? {
                    None | Some([]) => Ok(Value::Null),
                    Some(raw) => json::parse(raw),
                }
            }
            Shape::JsonSchemaOrBool(id) => self.schema_or_bool(r.bytes()?, *id),
            Shape::JsonSchemaOrArray(id) => self.schema_or_list(r.bytes()?, *id, |d, r| {
                let ty = d.table.get(*id);
                d.message(Reader::new(r.bytes()?), ty)
            }),
            Shape::JsonSchemaOrStrings(id) => {
                self.schema_or_list(r.bytes()?, *id, |_, r| Ok(Value::String(text(r.bytes()?))))
            }
            Shape::Named(id) => {
                let ty = self.table.get(*id);
                self.message(Reader::new(r.bytes()?), ty)
            }
            Shape::Struct(ty) => self.message(Reader::new(r.bytes()?), ty),
            Shape::List(item) => self.boxed_list(r.bytes()?, item),
            Shape::Map(_) => Err(DecodeError::malformed("a map inside a list or map")),
        }
    }

    fn boxed_list(&mut self, message: &[u8], item: &'s Schema) -> Result<Value> {
        let mut items = Vec::new();
        let mut r = Reader::new(message);
        while let Some(tag) = r.tag(|| "Items".into())? {
            if tag.number == 1 && tag.wire_type == wire_type(item) {
                items.push(self.value(&mut r, item)?);
            } else {
                r.skip(tag.wire_type)?;
            }
        }
        Ok(Value::Array(items))
    }

    fn schema_or_bool(&mut self, message: &[u8], id: TypeId) -> Result<Value> {
        let mut value = Value::Bool(false);
        let mut r = Reader::new(message);
        while let Some(tag) = r.tag(|| "JSONSchemaPropsOrBool".into())? {
            match (tag.number, tag.wire_type) {
                (1, VARINT) => {
                    let allows = r.varint()? != 0;
                    if !matches!(value, Value::Object(_)) {
                        value = Value::Bool(allows);
                    }
                }
                (2, BYTES) => value = self.message(Reader::new(r.bytes()?), self.table.get(id))?,
                (1 | 2, _) => return Err(wrong_type(tag, if tag.number == 1 { "Allows" } else { "Schema" }.into())),
                _ => r.skip(tag.wire_type)?,
            }
        }
        Ok(value)
    }

    /// A schema (field 1) or a list (field 2); the list wins if both are there.
    fn schema_or_list(
        &mut self,
        message: &[u8],
        id: TypeId,
        item: impl Fn(&mut Self, &mut Reader<'_>) -> Result<Value>,
    ) -> Result<Value> {
        let mut schema = Value::Null;
        let mut items = Vec::new();
        let mut r = Reader::new(message);
        while let Some(tag) = r.tag(|| "JSONSchemaProps".into())? {
            match (tag.number, tag.wire_type) {
                (1, BYTES) => schema = self.message(Reader::new(r.bytes()?), self.table.get(id))?,
                (2, BYTES) => items.push(item(self, &mut r)?),
                (1 | 2, _) => return Err(wrong_type(tag, "Schema".into())),
                _ => r.skip(tag.wire_type)?,
            }
        }
        Ok(if items.is_empty() { schema } else { Value::Array(items) })
    }
}

/// Whether JSON has a field with its zero value.
fn is_printed_empty(field: &Field) -> bool {
    field.presence.nilable || field.presence.omit == Omit::Never
}

/// The bit of a field; 0 if there is none for it.
fn bit(index: u16) -> u64 {
    1u64.checked_shl(index.into()).unwrap_or(0)
}

#[inline]
pub(super) fn find<'s>(slots: &'s [ProtoSlot], next: &mut usize, number: u32) -> Option<&'s ProtoSlot> {
    let number_of = |slot: &ProtoSlot| match slot {
        ProtoSlot::Field { number, .. } | ProtoSlot::Inline { number, .. } => *number,
    };
    if *next > 0 && number_of(&slots[*next - 1]) > number {
        *next = 0;
    }
    // A repeated field stays where it is.
    let mut at = next.saturating_sub(1);
    while let Some(slot) = slots.get(at) {
        let n = number_of(slot);
        if n >= number {
            *next = at + 1;
            return (n == number).then_some(slot);
        }
        at += 1;
    }
    None
}

pub(super) fn wire_type(schema: &Schema) -> u8 {
    match schema.shape {
        Shape::Bool | Shape::Int32 | Shape::Int64 => VARINT,
        Shape::Float => FIXED64,
        _ => BYTES,
    }
}

fn expect(tag: Tag, schema: &Schema, ty: &StructType, field: &Field) -> Result<()> {
    if tag.wire_type == wire_type(schema) { Ok(()) } else { Err(wrong_type(tag, names::field(ty, field))) }
}

#[cold]
fn wrong_type(tag: Tag, field: String) -> DecodeError {
    WireError::WrongWireType { wire_type: tag.wire_type, field }.into()
}

fn number(shape: &Shape, n: u64) -> Value {
    match shape {
        Shape::Bool => Value::Bool(n != 0),
        // Only the low 32 bits count, as in Go.
        Shape::Int32 => Value::Int(i64::from(n as i32)),
        _ => Value::Int(n as i64),
    }
}

#[inline]
fn text(bytes: &[u8]) -> Str {
    match std::str::from_utf8(bytes) {
        Ok(s) => Str::from(s),
        Err(_) => {
            let mut s = String::with_capacity(bytes.len() + 8);
            json::lexer::push_repaired(&mut s, bytes);
            Str::from(s)
        }
    }
}

/// False, 0 and "": what gogo writes and JSON leaves out.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        _ => false,
    }
}

fn merge(before: &mut Value, after: Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in after {
                match before.get_mut(&key) {
                    Some(old) => merge(old, value),
                    None => {
                        before.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => before.extend(after),
        (before, after) => *before = after,
    }
}

/// The last value of the one field that a small message has.
pub(super) fn single<'a, T>(
    message: &'a [u8],
    number: u32,
    wire_type: u8,
    field: &str,
    read: impl Fn(&mut Reader<'a>) -> std::result::Result<T, WireError>,
) -> Result<Option<T>> {
    let mut r = Reader::new(message);
    let mut found = None;
    while let Some(tag) = r.tag(|| field.to_owned())? {
        if tag.number != number {
            r.skip(tag.wire_type)?;
        } else if tag.wire_type == wire_type {
            found = Some(read(&mut r)?);
        } else {
            return Err(wrong_type(tag, field.to_owned()));
        }
    }
    Ok(found)
}

/// Seconds and nanoseconds; `None` for the empty message, which is the zero time.
pub(super) fn timestamp(message: &[u8]) -> Result<Option<(i64, i32)>> {
    if message.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut r = Reader::new(message);
    while let Some(tag) = r.tag(|| "Timestamp".into())? {
        match (tag.number, tag.wire_type) {
            (1, VARINT) => seconds = r.varint()? as i64,
            (2, VARINT) => nanos = r.varint()? as i32,
            (1, _) => return Err(wrong_type(tag, "Seconds".into())),
            (2, _) => return Err(wrong_type(tag, "Nanos".into())),
            _ => r.skip(tag.wire_type)?,
        }
    }
    Ok(Some((seconds, nanos)))
}

fn quantity(message: &[u8]) -> Result<Value> {
    let Some(bytes) = single(message, 1, BYTES, "String_", |r| r.bytes())? else { return Ok("0".into()) };
    let text = String::from_utf8_lossy(bytes);
    match Quantity::parse(&text) {
        Ok(q) => Ok(q.to_string().into()),
        Err(e) => Err(DecodeError::Malformed(e.to_string())),
    }
}

pub(super) fn int_or_string(message: &[u8]) -> Result<Value> {
    let (mut kind, mut int, mut string) = (0, 0, Str::default());
    let mut r = Reader::new(message);
    while let Some(tag) = r.tag(|| "IntOrString".into())? {
        match (tag.number, tag.wire_type) {
            (1, VARINT) => kind = r.varint()?,
            (2, VARINT) => int = r.varint()? as i32,
            (3, BYTES) => string = text(r.bytes()?),
            (1, _) => return Err(wrong_type(tag, "Type".into())),
            (2, _) => return Err(wrong_type(tag, "IntVal".into())),
            (3, _) => return Err(wrong_type(tag, "StrVal".into())),
            _ => r.skip(tag.wire_type)?,
        }
    }
    Ok(if kind == 1 { Value::String(string) } else { Value::Int(i64::from(int)) })
}
