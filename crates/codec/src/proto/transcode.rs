//! Messages to JSON text without a value in between: what reads from the store cost.
//!
//! The text is that of the canonical form, as decoding, `schema::canonicalize` and writing would give it, but with
//! members in the order of their protobuf numbers. Messages that no encoder of ours or the reference's writes
//! (fields given twice, lists in pieces, maps out of order) go the long way.

use super::names;
use super::wire::{BYTES, Reader, Tag, VARINT, WireError};
use super::{Envelope, MAX_DEPTH, decode};
use crate::error::DecodeError;
use crate::json::{self, write_float, write_int, write_string};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubelith_meta::quantity::Quantity;
use kubelith_meta::time::{Duration, Time};
use kubelith_schema::{
    Empties, Field, Omit, ProtoSlot, Schema, Shape, StructType, TypeId, TypeTable, TypedSchema, canonicalize,
};

/// Appends the JSON of an enveloped object. On an error `out` is as it was.
pub fn to_json(out: &mut Vec<u8>, data: &[u8], schema: &TypedSchema) -> Result<(), DecodeError> {
    let envelope = Envelope::read(data)?;
    let Some(ty) = schema.root_struct() else { return Err(DecodeError::malformed("not a message")) };
    let start = out.len();
    let mut w = Transcoder { table: &schema.table, out, depth: 0 };
    match w.object(&envelope, ty) {
        Ok(()) => Ok(()),
        Err(stop) => {
            out.truncate(start);
            match stop {
                Stop::Error(e) => Err(e),
                Stop::Unusual => the_long_way(out, &envelope, schema),
            }
        }
    }
}

fn the_long_way(out: &mut Vec<u8>, envelope: &Envelope<'_>, schema: &TypedSchema) -> Result<(), DecodeError> {
    let mut value = decode(envelope.raw, schema)?;
    canonicalize(&schema.table, &schema.root, &mut value, Empties::Absent);
    let meta = &envelope.type_meta;
    for (name, text) in [("kind", &meta.kind), ("apiVersion", &meta.api_version)] {
        if !text.is_empty() {
            value.make_object().insert(name, text.clone());
        }
    }
    json::write(out, &value);
    Ok(())
}

struct Transcoder<'s, 'o> {
    table: &'s TypeTable,
    out: &'o mut Vec<u8>,
    depth: usize,
}

enum Stop {
    Error(DecodeError),
    /// Well formed, but not in the order that this way needs.
    Unusual,
}

impl From<WireError> for Stop {
    fn from(e: WireError) -> Stop {
        Stop::Error(e.into())
    }
}

impl From<DecodeError> for Stop {
    fn from(e: DecodeError) -> Stop {
        Stop::Error(e)
    }
}

type Step<T> = Result<T, Stop>;

/// What was printed, as `omitempty` and `omitzero` look at it.
#[derive(Clone, Copy, PartialEq)]
enum Printed {
    /// null: as if it were absent.
    Null,
    /// false, 0, "", [] or {}.
    Empty,
    /// A struct with members that are all zero.
    Zero,
    Something,
}

impl Printed {
    fn something_if(yes: bool) -> Printed {
        if yes { Printed::Something } else { Printed::Empty }
    }
}

/// Where a message is being written to.
struct Open<'s> {
    ty: &'s StructType,
    /// Behind the opening brace: a comma is needed if there is more.
    start: usize,
    seen: u128,
    /// All members so far are zero.
    zero: bool,
}

impl<'s> Transcoder<'s, '_> {
    fn object(&mut self, envelope: &Envelope<'_>, ty: &'s StructType) -> Step<()> {
        self.out.push(b'{');
        let mut open = Open { ty, start: self.out.len(), seen: 0, zero: true };
        for (name, text) in [("kind", &envelope.type_meta.kind), ("apiVersion", &envelope.type_meta.api_version)] {
            if !text.is_empty() {
                self.name(&open, name);
                write_string(self.out, text);
            }
        }
        self.fields(Reader::new(envelope.raw), &mut open, &ty.proto)?;
        self.missing(&mut open);
        self.out.push(b'}');
        Ok(())
    }

    fn message(&mut self, r: Reader<'_>, ty: &'s StructType) -> Step<Printed> {
        if self.depth >= MAX_DEPTH {
            return Err(WireError::TooDeep.into());
        }
        self.depth += 1;
        self.out.push(b'{');
        let mut open = Open { ty, start: self.out.len(), seen: 0, zero: true };
        self.fields(r, &mut open, &ty.proto)?;
        self.missing(&mut open);
        let empty = self.out.len() == open.start;
        self.out.push(b'}');
        self.depth -= 1;
        Ok(match (empty, open.zero) {
            (true, _) => Printed::Empty,
            (_, true) => Printed::Zero,
            _ => Printed::Something,
        })
    }

    fn fields(&mut self, mut r: Reader<'_>, open: &mut Open<'s>, slots: &'s [ProtoSlot]) -> Step<()> {
        let ty = open.ty;
        let mut next = 0;
        while let Some(tag) = r.tag(|| names::message(ty))? {
            match decode::find(slots, &mut next, tag.number) {
                None => r.skip(tag.wire_type)?,
                Some(ProtoSlot::Inline { slots, .. }) => {
                    if tag.wire_type != BYTES {
                        return Err(wrong_type(tag, "inline".into()));
                    }
                    self.fields(Reader::new(r.bytes()?), open, slots)?;
                }
                Some(ProtoSlot::Field { field, .. }) => {
                    let bit = 1u128.checked_shl(u32::from(*field)).ok_or(Stop::Unusual)?;
                    if open.seen & bit != 0 {
                        return Err(Stop::Unusual);
                    }
                    open.seen |= bit;
                    self.field(&mut r, tag, open, &ty.fields[usize::from(*field)])?;
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, r: &mut Reader<'_>, tag: Tag, open: &mut Open<'s>, field: &'s Field) -> Step<()> {
        let before = self.out.len();
        self.name(open, &field.name);
        let printed = match &field.schema.shape {
            Shape::List(item) if !field.schema.boxed => self.list(r, tag, item, open.ty, field)?,
            Shape::Map(item) => self.map(r, tag, item, open.ty, field)?,
            _ => {
                expect(tag, &field.schema, open.ty, field)?;
                self.value(r, &field.schema)?
            }
        };
        if is_kept(field, printed) {
            open.zero &= !matches!(printed, Printed::Something);
        } else {
            self.out.truncate(before);
            if is_always_printed(field) {
                self.name(open, &field.name);
                self.zero_field(field);
            }
        }
        Ok(())
    }

    /// Fields that are printed though the message does not have them.
    fn missing(&mut self, open: &mut Open<'s>) {
        for (i, field) in open.ty.fields.iter().enumerate() {
            let seen = 1u128.checked_shl(i as u32).is_some_and(|bit| open.seen & bit != 0);
            if !seen && is_always_printed(field) {
                self.name(open, &field.name);
                self.zero_field(field);
            }
        }
    }

    #[inline]
    fn name(&mut self, open: &Open<'_>, name: &str) {
        if self.out.len() > open.start {
            self.out.push(b',');
        }
        // Names of fields have no characters to escape.
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// The elements of a list, which follow one another under the same tag.
    fn list(
        &mut self,
        r: &mut Reader<'_>,
        tag: Tag,
        item: &'s Schema,
        ty: &StructType,
        field: &Field,
    ) -> Step<Printed> {
        if tag.wire_type == BYTES && decode::wire_type(item) == VARINT {
            // Packed; the reference does not write that.
            return Err(Stop::Unusual);
        }
        expect(tag, item, ty, field)?;
        self.out.push(b'[');
        loop {
            self.value(r, item)?;
            let mut ahead = r.clone();
            match ahead.tag(|| names::message(ty))? {
                Some(next) if next.number == tag.number && next.wire_type == tag.wire_type => *r = ahead,
                _ => break,
            }
            self.out.push(b',');
        }
        self.out.push(b']');
        Ok(Printed::Something)
    }

    fn map(&mut self, r: &mut Reader<'_>, tag: Tag, item: &'s Schema, ty: &StructType, field: &Field) -> Step<Printed> {
        if tag.wire_type != BYTES {
            return Err(wrong_type(tag, names::field(ty, field)));
        }
        self.out.push(b'{');
        let mut last: Option<&[u8]> = None;
        loop {
            let entry = r.bytes()?;
            let (key, value) = entry_parts(entry, item, ty)?;
            if last.is_some_and(|last| last >= key) {
                return Err(Stop::Unusual);
            }
            if last.is_some() {
                self.out.push(b',');
            }
            last = Some(key);
            self.text(key);
            self.out.push(b':');
            match value {
                Some(mut value) => {
                    self.value(&mut value, item)?;
                }
                // Bytes that Go has as nil read back as empty ones.
                None if matches!(item.shape, Shape::Bytes) => self.out.extend_from_slice(b"\"\""),
                None => {
                    self.zero(item);
                }
            }
            let mut ahead = r.clone();
            match ahead.tag(|| names::message(ty))? {
                Some(next) if next.number == tag.number && next.wire_type == BYTES => *r = ahead,
                _ => break,
            }
        }
        self.out.push(b'}');
        Ok(Printed::Something)
    }

    fn value(&mut self, r: &mut Reader<'_>, schema: &'s Schema) -> Step<Printed> {
        match &schema.shape {
            Shape::String => {
                let bytes = r.bytes()?;
                self.text(bytes);
                Ok(Printed::something_if(!bytes.is_empty()))
            }
            Shape::Bool => {
                let yes = r.varint()? != 0;
                self.out.extend_from_slice(if yes { b"true" } else { b"false" });
                Ok(Printed::something_if(yes))
            }
            Shape::Int32 => {
                let n = i64::from(r.varint()? as i32);
                Ok(self.int(n))
            }
            Shape::Int64 => {
                let n = r.varint()? as i64;
                Ok(self.int(n))
            }
            Shape::Named(id) => {
                let ty = self.table.get(*id);
                self.message(Reader::new(r.bytes()?), ty)
            }
            Shape::Struct(ty) => self.message(Reader::new(r.bytes()?), ty),
            Shape::Float => {
                let f = f64::from_bits(r.fixed64()?);
                write_float(self.out, f);
                Ok(Printed::something_if(f != 0.0))
            }
            Shape::Bytes => {
                let bytes = r.bytes()?;
                self.base64(bytes);
                Ok(Printed::something_if(!bytes.is_empty()))
            }
            Shape::Time => self.time(r.bytes()?, |time| time.rfc3339()),
            Shape::MicroTime => self.time(r.bytes()?, |time| time.rfc3339_micro()),
            Shape::Duration => {
                let nanos = decode::single(r.bytes()?, 1, VARINT, "Duration", |r| r.varint())?.unwrap_or(0);
                write_string(self.out, &Duration::from_nanos(nanos as i64).to_string());
                Ok(Printed::Something)
            }
            Shape::Quantity => self.quantity(r.bytes()?),
            Shape::IntOrString => {
                let value = decode::int_or_string(r.bytes()?)?;
                json::write(self.out, &value);
                Ok(Printed::something_if(!value.is_empty()))
            }
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json | Shape::Any => {
                match decode::single(r.bytes()?, 1, BYTES, "Raw", |r| r.bytes())? {
                    None | Some([]) => Ok(self.null()),
                    Some(raw) => self.raw(raw),
                }
            }
            Shape::List(item) => self.boxed_list(r.bytes()?, item),
            Shape::JsonSchemaOrBool(id) => self.schema_or_bool(r.bytes()?, *id),
            Shape::JsonSchemaOrArray(id) => self.schema_or_list(r.bytes()?, *id, |w, r| {
                let ty = w.table.get(*id);
                w.message(Reader::new(r.bytes()?), ty).map(drop)
            }),
            Shape::JsonSchemaOrStrings(id) => self.schema_or_list(r.bytes()?, *id, |w, r| {
                w.text(r.bytes()?);
                Ok(())
            }),
            Shape::Map(_) => Err(DecodeError::malformed("a map inside a list or map").into()),
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(s) => write_string(self.out, s),
            Err(_) => {
                let mut s = String::with_capacity(bytes.len() + 8);
                json::lexer::push_repaired(&mut s, bytes);
                write_string(self.out, &s);
            }
        }
    }

    fn int(&mut self, n: i64) -> Printed {
        write_int(self.out, n);
        Printed::something_if(n != 0)
    }

    fn null(&mut self) -> Printed {
        self.out.extend_from_slice(b"null");
        Printed::Null
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        let start = self.out.len();
        self.out.resize(start + bytes.len().div_ceil(3) * 4, 0);
        STANDARD.encode_slice(bytes, &mut self.out[start..]).expect("the buffer has the size of the text");
        self.out.push(b'"');
    }

    fn time(&mut self, message: &[u8], format: fn(Time) -> String) -> Step<Printed> {
        let time = decode::timestamp(message)?.map(|(seconds, nanos)| Time::from_unix_nanos(seconds, i64::from(nanos)));
        match time.filter(|t| !t.truncate_to_micros().is_zero()) {
            None => Ok(self.null()),
            Some(time) => {
                self.out.push(b'"');
                self.out.extend_from_slice(format(time).as_bytes());
                self.out.push(b'"');
                Ok(Printed::Something)
            }
        }
    }

    fn quantity(&mut self, message: &[u8]) -> Step<Printed> {
        let bytes = decode::single(message, 1, BYTES, "String_", |r| r.bytes())?.unwrap_or(b"0");
        self.out.push(b'"');
        if is_plain_quantity(bytes) {
            self.out.extend_from_slice(bytes);
        } else {
            let quantity = Quantity::parse(&String::from_utf8_lossy(bytes));
            let text = quantity.map_err(|e| DecodeError::Malformed(e.to_string()))?.to_string();
            self.out.extend_from_slice(text.as_bytes());
        }
        self.out.push(b'"');
        Ok(Printed::Something)
    }

    /// JSON inside of protobuf. Its bytes are not ours: they are checked before they become part of an answer.
    fn raw(&mut self, raw: &[u8]) -> Step<Printed> {
        if raw == b"null" {
            return Ok(self.null());
        }
        json::compact(self.out, raw).map_err(|e| Stop::Error(e.into()))?;
        Ok(if raw == b"{}" { Printed::Empty } else { Printed::Something })
    }

    fn boxed_list(&mut self, message: &[u8], item: &'s Schema) -> Step<Printed> {
        self.out.push(b'[');
        let start = self.out.len();
        let mut r = Reader::new(message);
        while let Some(tag) = r.tag(|| "Items".into())? {
            if tag.number != 1 || tag.wire_type != decode::wire_type(item) {
                r.skip(tag.wire_type)?;
                continue;
            }
            if self.out.len() > start {
                self.out.push(b',');
            }
            self.value(&mut r, item)?;
        }
        let empty = self.out.len() == start;
        self.out.push(b']');
        Ok(Printed::something_if(!empty))
    }

    fn schema_or_bool(&mut self, message: &[u8], id: TypeId) -> Step<Printed> {
        let mut r = Reader::new(message);
        let (mut allows, mut schema) = (false, None);
        while let Some(tag) = r.tag(|| "JSONSchemaPropsOrBool".into())? {
            match (tag.number, tag.wire_type) {
                (1, VARINT) => allows = r.varint()? != 0,
                (2, BYTES) if schema.is_none() => schema = Some(r.bytes()?),
                _ => return Err(Stop::Unusual),
            }
        }
        match schema {
            Some(schema) => self.message(Reader::new(schema), self.table.get(id)),
            None => {
                self.out.extend_from_slice(if allows { b"true" } else { b"false" });
                Ok(Printed::something_if(allows))
            }
        }
    }

    fn schema_or_list(
        &mut self,
        message: &[u8],
        id: TypeId,
        item: impl Fn(&mut Self, &mut Reader<'_>) -> Step<()>,
    ) -> Step<Printed> {
        let mut r = Reader::new(message);
        match r.tag(|| "JSONSchemaProps".into())? {
            None => Ok(self.null()),
            Some(Tag { number: 1, wire_type: BYTES }) => {
                let printed = self.message(Reader::new(r.bytes()?), self.table.get(id))?;
                if r.is_empty() { Ok(printed) } else { Err(Stop::Unusual) }
            }
            Some(Tag { number: 2, wire_type: BYTES }) => {
                self.out.push(b'[');
                loop {
                    item(self, &mut r)?;
                    match r.tag(|| "JSONSchemaProps".into())? {
                        None => break,
                        Some(Tag { number: 2, wire_type: BYTES }) => self.out.push(b','),
                        Some(_) => return Err(Stop::Unusual),
                    }
                }
                self.out.push(b']');
                Ok(Printed::Something)
            }
            Some(_) => Err(Stop::Unusual),
        }
    }

    fn zero_field(&mut self, field: &'s Field) {
        if field.presence.nilable {
            self.null();
        } else {
            self.zero(&field.schema);
        }
    }

    /// What Go prints for the zero value of a shape.
    fn zero(&mut self, schema: &'s Schema) {
        let text: &[u8] = match &schema.shape {
            Shape::Bool => b"false",
            Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => b"0",
            Shape::String => b"\"\"",
            Shape::Quantity => b"\"0\"",
            Shape::Duration => b"\"0s\"",
            Shape::List(_) => b"[]",
            Shape::Named(id) => {
                self.out.push(b'{');
                let mut open = Open { ty: self.table.get(*id), start: self.out.len(), seen: 0, zero: true };
                self.missing(&mut open);
                b"}"
            }
            _ => b"null",
        };
        self.out.extend_from_slice(text);
    }
}

/// The key and the value of a map entry; the reader stands before the value.
fn entry_parts<'a>(entry: &'a [u8], item: &Schema, ty: &StructType) -> Step<(&'a [u8], Option<Reader<'a>>)> {
    let mut r = Reader::new(entry);
    let (mut key, mut value): (&[u8], _) = (b"", None);
    while let Some(tag) = r.tag(|| names::message(ty))? {
        match tag.number {
            1 if tag.wire_type == BYTES => key = r.bytes()?,
            2 if tag.wire_type == decode::wire_type(item) && value.is_none() => {
                value = Some(r.clone());
                r.skip(tag.wire_type)?;
            }
            _ => return Err(Stop::Unusual),
        }
    }
    Ok((key, value))
}

/// A quantity that is known to print as it is written: a short number without zeros at either end, and a unit.
fn is_plain_quantity(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let plain = match number {
        [] | [b'0', ..] => number == b"0" && unit.is_empty(),
        number => number.len() <= 15 && !number.ends_with(b"000"),
    };
    // Below 1024 there is no larger binary unit.
    let small = digits <= 3;
    plain
        && match unit {
            b"" | b"m" | b"k" | b"M" | b"G" | b"T" => true,
            b"Ki" | b"Mi" | b"Gi" | b"Ti" => small,
            _ => false,
        }
}

fn expect(tag: Tag, schema: &Schema, ty: &StructType, field: &Field) -> Step<()> {
    if tag.wire_type == decode::wire_type(schema) { Ok(()) } else { Err(wrong_type(tag, names::field(ty, field))) }
}

#[cold]
fn wrong_type(tag: Tag, field: String) -> Stop {
    WireError::WrongWireType { wire_type: tag.wire_type, field }.into()
}

/// Is a field that was printed kept? The rules are those of `schema::canonicalize`.
fn is_kept(field: &Field, printed: Printed) -> bool {
    if printed == Printed::Null {
        return false;
    }
    if field.presence.pointer || field.presence.omit == Omit::Never {
        return true;
    }
    match (&field.schema.shape, field.presence.omit) {
        (Shape::Named(_), Omit::Zero) => printed == Printed::Something,
        (Shape::Named(_) | Shape::Struct(_), _) => true,
        (shape, Omit::Empty) if is_scalar_struct(shape) => true,
        _ => printed != Printed::Empty,
    }
}

fn is_always_printed(field: &Field) -> bool {
    match field.presence.omit {
        Omit::Never => true,
        Omit::Empty => {
            let shape = &field.schema.shape;
            !field.presence.nilable && (matches!(shape, Shape::Named(_)) || is_scalar_struct(shape))
        }
        Omit::Zero => false,
    }
}

/// Structs in Go, scalars in JSON.
fn is_scalar_struct(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::RawExtension
            | Shape::FieldsV1
            | Shape::Json
    )
}
