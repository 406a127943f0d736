//! The decoder: a loop over tokens with a stack of open structs, maps and lists. Iterative, because schemas can
//! be recursive (JSONSchemaProps) and input as deep as it likes.

use super::special::{self, Special};
use super::{Form, context, merge};
use crate::base64;
use crate::error::DecodeError;
use crate::json::lexer::{AFTER_ELEMENT, AFTER_MEMBER, Lexer, Token};
use crate::json::parse::Parser;
use crate::json::{Decoded, SeenKeys, StrictError, StrictErrors, Strictness, SyntaxError, number};
use kubelith_meta::{Head, Key, Map, Str, Value};
use kubelith_schema::canonical::{Stays, stays, zero_field};
use kubelith_schema::{Field, Omit, Schema, Shape, StructType, TypeId, TypeTable};

pub(super) struct Decoder<'s, 'd> {
    lexer: Lexer<'d>,
    pub table: &'s TypeTable,
    pub root: Option<&'s Schema>,
    strictness: Strictness,
    /// Whether structs get what is always printed.
    aim: Form,
    /// What the value has come to be.
    pub form: Form,
    /// Some field was there twice.
    pub has_repeated: bool,
    pub stack: Vec<Frame<'s>>,
    /// Elements of the open lists and members of the open structs and maps, innermost last.
    pub elements: Vec<Value>,
    members: Vec<(Key, Value)>,
    /// For places that take anything.
    parser: Parser<'static>,
    strict: StrictErrors,
    /// The first wrong type.
    wrong_type: Option<DecodeError>,
    /// The first error of a value that parses itself; it stops the reference's decoder.
    fatal: Option<DecodeError>,
}

/// An open container.
pub(super) struct Frame<'s> {
    pub kind: FrameKind<'s>,
    /// Where its elements or members begin.
    pub start: usize,
    /// Inside one of JSONSchemaProps' sum types. The reference decodes these with a decoder of their own that
    /// reports neither unknown nor duplicate fields and stops at the first wrong type.
    pub nested: bool,
}

pub(super) enum FrameKind<'s> {
    Struct {
        ty: &'s StructType,
        /// The field whose value is being read.
        field: usize,
        seen: u128,
        /// Fields that were seen but have no value.
        absent: u128,
        /// The field was there before.
        again: bool,
        /// Some field was there before: its values are merged in the end.
        repeated: bool,
    },
    Map {
        value: &'s Schema,
        key: Key,
        seen: SeenKeys,
    },
    List {
        item: Place<'s>,
    },
}

/// What belongs where the decoder is.
#[derive(Clone, Copy)]
pub(super) enum Place<'s> {
    Schema(&'s Schema),
    Type(TypeId),
    String,
    /// An element of bytes that are given as a list of numbers, which Go takes for base64, too.
    Byte,
}

/// What became of the beginning of a value.
enum Begun<'s> {
    Done(Value),
    /// Null, or of a wrong type: as if it were not there.
    Absent,
    /// A container was opened; its first value belongs here.
    Opened(Place<'s>),
}

impl<'s, 'd> Decoder<'s, 'd> {
    pub fn new(data: &'d [u8], table: &'s TypeTable, strictness: Strictness, aim: Form) -> Decoder<'s, 'd> {
        Decoder {
            lexer: Lexer::new(data),
            table,
            root: None,
            strictness,
            aim,
            form: aim,
            has_repeated: false,
            stack: Vec::with_capacity(16),
            elements: Vec::new(),
            members: Vec::new(),
            parser: Parser::new(strictness),
            strict: StrictErrors::default(),
            wrong_type: None,
            fatal: None,
        }
    }

    pub fn document(&mut self, root: &'s Schema) -> Result<Decoded, DecodeError> {
        self.root = Some(root);
        let value = self.value(Place::Schema(root))?;
        self.lexer.end()?;
        if let Some(e) = self.fatal.take().or(self.wrong_type.take()) {
            return Err(e);
        }
        let value = value.unwrap_or_else(|| {
            self.form = Form::Sent;
            special::zero(self.table, Place::Schema(root))
        });
        Ok(Decoded { value, strict: std::mem::take(&mut self.strict).into_vec() })
    }

    fn value(&mut self, mut place: Place<'s>) -> Result<Option<Value>, SyntaxError> {
        loop {
            let mut done = match self.begin(place)? {
                Begun::Opened(first) => {
                    place = first;
                    continue;
                }
                Begun::Done(value) => Some(value),
                Begun::Absent => None,
            };
            loop {
                if self.stack.is_empty() {
                    return Ok(done);
                }
                self.attach(done, place);
                match self.advance()? {
                    Some(next) => {
                        place = next;
                        break;
                    }
                    None => {
                        done = Some(self.close());
                        place = self.place();
                    }
                }
            }
        }
    }

    /// Reads a scalar, or opens a container.
    fn begin(&mut self, place: Place<'s>) -> Result<Begun<'s>, SyntaxError> {
        let schema = match place {
            Place::Schema(schema) => schema,
            Place::Type(id) => return self.begin_struct(self.table.get(id), self.nested()),
            Place::String => return self.begin_string(),
            Place::Byte => return self.integer(|i| u8::try_from(i).is_ok()),
        };
        match &schema.shape {
            Shape::String => self.begin_string(),
            Shape::Named(id) => self.begin_struct(self.table.get(*id), self.nested()),
            Shape::Struct(ty) => {
                self.form = Form::Sent;
                self.begin_struct(ty, self.nested())
            }
            Shape::List(item) => self.begin_list(Place::Schema(item), self.nested()),
            Shape::Map(value) => self.begin_map(value),
            Shape::Bool => self.scalar(|d, token| match token {
                Token::Bool(b) => Some(Value::Bool(*b)),
                other => d.wrong(other.kind()),
            }),
            Shape::Int32 => self.integer(|i| i32::try_from(i).is_ok()),
            Shape::Int64 => self.integer(|_| true),
            Shape::Float => self.scalar(|d, token| match token {
                Token::Number(n) => match number::double(*n) {
                    Some(f) => Some(number::stored_form(f)),
                    None => d.wrong(&format!("number {}", n.text)),
                },
                other => d.wrong(other.kind()),
            }),
            Shape::Any => self.any(self.strictness),
            Shape::FieldsV1 if self.lexer.peek() == Some(b'{') => self.raw(),
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json => self.any(Strictness::Lenient),
            Shape::Bytes if self.lexer.peek() == Some(b'[') => self.begin_list(Place::Byte, self.nested()),
            Shape::Bytes => self.scalar(|d, token| match token {
                Token::String(s) => match special::bytes(s) {
                    Ok(text) => Some(text),
                    Err(e) => d.save(DecodeError::malformed(e)),
                },
                other => d.wrong(other.kind()),
            }),
            Shape::Time => self.special(Special::Time),
            Shape::MicroTime => self.special(Special::MicroTime),
            Shape::Duration => self.special(Special::Duration),
            Shape::Quantity => self.special(Special::Quantity),
            Shape::IntOrString => self.special(Special::IntOrString),
            Shape::JsonSchemaOrBool(id) => self.schema_or_bool(*id),
            Shape::JsonSchemaOrArray(id) => self.schema_or_list(*id, Place::Type(*id)),
            Shape::JsonSchemaOrStrings(id) => self.schema_or_list(*id, Place::String),
        }
    }

    fn begin_string(&mut self) -> Result<Begun<'s>, SyntaxError> {
        if self.lexer.peek() == Some(b'"') {
            return Ok(Begun::Done(Value::String(Str::from(self.lexer.string()?))));
        }
        self.scalar(|d, token| match token {
            Token::String(s) => Some(Value::String(Str::from(s.as_ref()))),
            other => d.wrong(other.kind()),
        })
    }

    fn integer(&mut self, fits: fn(i64) -> bool) -> Result<Begun<'s>, SyntaxError> {
        self.scalar(|d, token| match token {
            Token::Number(n) => match number::integer(*n).filter(|i| fits(*i)) {
                Some(i) => Some(Value::Int(i)),
                None => d.wrong(&format!("number {}", n.text)),
            },
            other => d.wrong(other.kind()),
        })
    }

    /// Reads a value that is no container; `read` turns the token into a value or notes what is wrong with it.
    fn scalar(&mut self, read: impl FnOnce(&mut Self, &Token<'d>) -> Option<Value>) -> Result<Begun<'s>, SyntaxError> {
        let token = self.token()?;
        if matches!(token, Token::Null) {
            return Ok(Begun::Absent);
        }
        Ok(read(self, &token).map_or(Begun::Absent, Begun::Done))
    }

    /// The next token; a container is read over and stands for itself.
    fn token(&mut self) -> Result<Token<'d>, SyntaxError> {
        let token = match self.lexer.peek() {
            Some(b'{') => Token::BeginObject,
            Some(b'[') => Token::BeginArray,
            _ => return self.lexer.value(self.stack.len()),
        };
        self.lexer.skip_value(self.stack.len())?;
        Ok(token)
    }

    /// A value with a text form of its own.
    fn special(&mut self, special: Special) -> Result<Begun<'s>, SyntaxError> {
        self.lexer.peek();
        let start = self.lexer.position();
        let token = self.token()?;
        let raw = self.lexer.since(start);
        Ok(match special.read(&token, raw) {
            Ok(Some(value)) => Begun::Done(value),
            Ok(None) => Begun::Absent,
            Err(e) => {
                let e = e.into_decode_error(|found, expected| context::type_error(self, found, expected));
                self.stop(e);
                Begun::Absent
            }
        })
    }

    /// Anything, kept as it is.
    fn any(&mut self, strictness: Strictness) -> Result<Begun<'s>, SyntaxError> {
        self.parser.set_strictness(if self.nested() { Strictness::Lenient } else { strictness });
        let list = self.lexer.peek() == Some(b'[');
        let value = self.parser.value(&mut self.lexer, self.stack.len())?;
        if let Some(text) = self.parser.bad_number.take() {
            let e = context::type_error(self, &format!("number {text}"), Some("float64"));
            self.save(e);
        }
        let found = std::mem::take(&mut self.parser.strict);
        for error in found.into_vec() {
            if let StrictError::DuplicateField(inner) = error {
                let outer = context::path(self);
                let dot = if list || outer.is_empty() { "" } else { "." };
                self.strict.add(StrictError::DuplicateField(format!("{outer}{dot}{inner}")));
            }
        }
        Ok(if value.is_null() { Begun::Absent } else { Begun::Done(value) })
    }

    /// An object that is kept as text.
    fn raw(&mut self) -> Result<Begun<'s>, SyntaxError> {
        let start = self.lexer.position();
        self.lexer.skip_fields(self.stack.len())?;
        Ok(Begun::Done(crate::json::raw(self.lexer.since(start))?))
    }

    fn schema_or_bool(&mut self, id: TypeId) -> Result<Begun<'s>, SyntaxError> {
        self.form = Form::Sent;
        match self.lexer.peek() {
            Some(b'{') => self.begin_struct(self.table.get(id), true),
            _ => self.scalar(|d, token| match token {
                Token::Bool(b) => Some(Value::Bool(*b)),
                _ => {
                    d.stop(DecodeError::malformed("boolean or JSON schema expected"));
                    None
                }
            }),
        }
    }

    /// What is neither is dropped without a word.
    fn schema_or_list(&mut self, id: TypeId, item: Place<'s>) -> Result<Begun<'s>, SyntaxError> {
        self.form = Form::Sent;
        match self.lexer.peek() {
            Some(b'{') => self.begin_struct(self.table.get(id), true),
            Some(b'[') => self.begin_list(item, true),
            _ => self.scalar(|_, _| None),
        }
    }

    fn begin_struct(&mut self, ty: &'s StructType, nested: bool) -> Result<Begun<'s>, SyntaxError> {
        let kind = FrameKind::Struct { ty, field: usize::MAX, seen: 0, absent: 0, again: false, repeated: false };
        self.begin_container(b'{', kind, nested)
    }

    fn begin_map(&mut self, value: &'s Schema) -> Result<Begun<'s>, SyntaxError> {
        let kind = FrameKind::Map { value, key: Key::default(), seen: SeenKeys::default() };
        self.begin_container(b'{', kind, self.nested())
    }

    fn begin_list(&mut self, item: Place<'s>, nested: bool) -> Result<Begun<'s>, SyntaxError> {
        self.begin_container(b'[', FrameKind::List { item }, nested)
    }

    fn begin_container(&mut self, open: u8, kind: FrameKind<'s>, nested: bool) -> Result<Begun<'s>, SyntaxError> {
        if self.lexer.peek() != Some(open) {
            return self.scalar(|d, token| d.wrong(token.kind()));
        }
        self.lexer.open(open, self.stack.len())?;
        let list = open == b'[';
        let start = if list { self.elements.len() } else { self.members.len() };
        self.stack.push(Frame { kind, start, nested });
        if if list { self.lexer.empty_array()? } else { self.lexer.empty_object()? } {
            return Ok(Begun::Done(self.close()));
        }
        let first = if list { Some(self.place()) } else { self.next_member()? };
        match first {
            Some(place) => Ok(Begun::Opened(place)),
            None => Ok(Begun::Done(self.close())),
        }
    }

    /// Puts a finished value (or the lack of one) into the innermost container.
    fn attach(&mut self, value: Option<Value>, place: Place<'s>) {
        let Some(frame) = self.stack.last_mut() else { return };
        match &mut frame.kind {
            FrameKind::List { .. } => {
                if value.is_none() {
                    self.form = Form::Sent;
                }
                let value = value.unwrap_or_else(|| special::zero(self.table, place));
                self.elements.push(value);
            }
            FrameKind::Map { key, .. } => {
                if value.is_none() {
                    self.form = Form::Sent;
                }
                let value = value.unwrap_or_else(|| special::zero(self.table, place));
                self.members.push((std::mem::take(key), value));
            }
            FrameKind::Struct { ty, field, absent, again, .. } => {
                let index = *field;
                if value.is_none() {
                    *absent |= bit(index);
                }
                match value {
                    Some(value) => {
                        let field = &ty.fields[index];
                        let is_zero = value.is_empty() || field.presence.omit == Omit::Zero;
                        if is_zero && stays(field, &value) != Stays::Yes {
                            self.form = Form::Sent;
                        }
                        self.members.push((ty.fields.key(index), value));
                    }
                    // null empties a pointer, a list or a map and leaves other fields as they are.
                    None if *again && ty.fields[index].presence.nilable => {
                        self.members.push((ty.fields.key(index), Value::Null));
                    }
                    None => {}
                }
            }
        }
    }

    /// Behind a value: the place of the next one in the innermost container, or `None` if that has ended.
    fn advance(&mut self) -> Result<Option<Place<'s>>, SyntaxError> {
        match self.stack.last().map(|f| &f.kind) {
            Some(FrameKind::List { item }) => {
                let item = *item;
                Ok(self.lexer.more(b']', AFTER_ELEMENT)?.then_some(item))
            }
            Some(_) => {
                if self.lexer.more(b'}', AFTER_MEMBER)? {
                    self.next_member()
                } else {
                    Ok(None)
                }
            }
            None => Ok(None),
        }
    }

    /// Reads members up to one that is no string, whose place it tells, reporting and skipping those that have none.
    fn next_member(&mut self) -> Result<Option<Place<'s>>, SyntaxError> {
        match self.stack.last().map(|f| &f.kind) {
            Some(FrameKind::Struct { .. }) => self.next_field(),
            Some(FrameKind::Map { .. }) => self.next_entry(),
            _ => Ok(None),
        }
    }

    fn next_field(&mut self) -> Result<Option<Place<'s>>, SyntaxError> {
        loop {
            let name = self.lexer.key()?;
            let depth = self.stack.len();
            let Some(Frame { kind: FrameKind::Struct { ty, field, seen, again, repeated, .. }, start, .. }) =
                self.stack.last_mut()
            else {
                return Ok(None);
            };
            let ty: &'s StructType = ty;
            let Some(index) = find(ty, *field, &name) else {
                if self.is_strict() && self.strict.has_room() {
                    let path = context::path_to(self, depth - 1, &name);
                    self.strict.add(StrictError::UnknownField(path));
                }
                self.lexer.skip_value(depth)?;
                if !self.lexer.more(b'}', AFTER_MEMBER)? {
                    return Ok(None);
                }
                continue;
            };
            *field = index;
            let bit = bit(index);
            let is_repeated = if bit == 0 {
                self.members[*start..].iter().any(|(name, _)| **name == *ty.fields[index].name)
            } else {
                *seen & bit != 0
            };
            *seen |= bit;
            *again = is_repeated;
            *repeated |= is_repeated;
            if is_repeated && self.is_strict() {
                self.report(StrictError::DuplicateField);
            }
            let field = &ty.fields[index];
            if !self.is_at_string(&field.schema) {
                return Ok(Some(Place::Schema(&field.schema)));
            }
            if !self.string_member(ty.fields.key(index), Some(field))? {
                return Ok(None);
            }
        }
    }

    fn next_entry(&mut self) -> Result<Option<Place<'s>>, SyntaxError> {
        loop {
            let name = self.lexer.key()?;
            let is_strict = self.is_strict();
            let Some(Frame { kind: FrameKind::Map { value, key, seen }, start, .. }) = self.stack.last_mut() else {
                return Ok(None);
            };
            let schema: &'s Schema = value;
            let repeats = is_strict && seen.repeats(&self.members[*start..], &name);
            *key = Key::new(Str::from(name));
            if repeats {
                self.report(StrictError::DuplicateField);
            }
            if !self.is_at_string(schema) {
                return Ok(Some(Place::Schema(schema)));
            }
            let Some(Frame { kind: FrameKind::Map { key, .. }, .. }) = self.stack.last_mut() else { return Ok(None) };
            let key = std::mem::take(key);
            if !self.string_member(key, None)? {
                return Ok(None);
            }
        }
    }

    /// Whether a string comes next, and belongs there. Most members are strings: they take no way about the stack.
    #[inline]
    fn is_at_string(&mut self, schema: &Schema) -> bool {
        matches!(schema.shape, Shape::String) && self.lexer.peek() == Some(b'"')
    }

    /// Reads a member that is a string, of a map or of a field; false if it was the last one.
    #[inline]
    fn string_member(&mut self, key: Key, field: Option<&Field>) -> Result<bool, SyntaxError> {
        let text = Value::String(Str::from(self.lexer.string()?));
        if text.is_empty() && field.is_some_and(|field| stays(field, &text) != Stays::Yes) {
            self.form = Form::Sent;
        }
        self.members.push((key, text));
        self.lexer.more(b'}', AFTER_MEMBER)
    }

    /// Whether unknown and repeated fields are reported.
    fn is_strict(&self) -> bool {
        self.strictness == Strictness::Report && !self.nested()
    }

    /// Takes the innermost container off the stack as a value.
    fn close(&mut self) -> Value {
        match self.stack.pop() {
            Some(Frame { kind: FrameKind::List { item: Place::Byte }, start, .. }) => {
                let bytes = self.elements.drain(start..).map(|v| v.as_i64().unwrap_or(0) as u8);
                base64::encode(&bytes.collect::<Vec<u8>>()).into()
            }
            Some(Frame { kind: FrameKind::List { .. }, start, .. }) => Value::Array(self.elements.split_off(start)),
            Some(Frame { kind: FrameKind::Struct { ty, repeated: true, .. }, start, .. }) => {
                self.has_repeated = true;
                Value::Object(merge::members(self.table, ty, self.members.split_off(start)))
            }
            Some(Frame { kind: FrameKind::Struct { ty, seen, absent, .. }, start, .. }) => {
                let present = seen & !absent;
                if self.aim == Form::Canonical {
                    self.add_printed(ty, present);
                    // Defaults are filled in next.
                    let more = (ty.fields.default_bits() & !present).count_ones() as usize;
                    if more > 0 {
                        let mut members = Vec::with_capacity(self.members.len() - start + more);
                        members.extend(self.members.drain(start..));
                        return Value::Object(Map::from_unsorted(members));
                    }
                }
                Value::Object(Map::from_unsorted(self.members.split_off(start)))
            }
            Some(Frame { start, .. }) => Value::Object(Map::from_unsorted(self.members.split_off(start))),
            None => Value::Null,
        }
    }

    /// Adds the fields that are always printed to a struct with those that are `present`.
    fn add_printed(&mut self, ty: &'s StructType, present: u128) {
        let Some(printed) = ty.fields.printed_bits() else {
            self.form = Form::Sent;
            return;
        };
        let mut missing = printed & !present;
        while missing != 0 {
            let index = missing.trailing_zeros() as usize;
            missing &= missing - 1;
            self.members.push((ty.fields.key(index), zero_field(self.table, &ty.fields[index])));
        }
    }

    /// Where values of the innermost container belong.
    fn place(&self) -> Place<'s> {
        match self.stack.last().map(|f| &f.kind) {
            Some(FrameKind::List { item }) => *item,
            Some(FrameKind::Map { value, .. }) => Place::Schema(value),
            Some(FrameKind::Struct { ty, field, .. }) => Place::Schema(&ty.fields[*field].schema),
            None => Place::String,
        }
    }

    fn nested(&self) -> bool {
        self.stack.last().is_some_and(|f| f.nested)
    }

    fn report(&mut self, error: fn(String) -> StrictError) {
        if self.strict.has_room() {
            let path = context::path(self);
            self.strict.add(error(path));
        }
    }

    /// Notes a wrong type.
    fn wrong(&mut self, found: &str) -> Option<Value> {
        let e = context::type_error(self, found, None);
        self.save(e)
    }

    /// Notes an error that does not stop the reference's decoder.
    fn save(&mut self, e: DecodeError) -> Option<Value> {
        if self.nested() {
            self.stop(e);
        } else {
            self.wrong_type.get_or_insert(e);
        }
        None
    }

    /// Notes an error that stops the reference's decoder: it takes precedence, but the syntax of the rest counts.
    fn stop(&mut self, e: DecodeError) {
        self.fatal.get_or_insert(e);
    }
}

/// The bit of a field, if it has one.
#[inline]
fn bit(index: usize) -> u128 {
    1u128.checked_shl(index as u32).unwrap_or(0)
}

/// The field of a key. Keys mostly come in order, so the one behind the last is tried first.
fn find(ty: &StructType, last: usize, key: &str) -> Option<usize> {
    let (next, head) = (last.wrapping_add(1), Head::of(key));
    if ty.fields.is_at(next, head, key) { Some(next) } else { ty.fields.position(head, key) }
}
