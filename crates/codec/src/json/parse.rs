//! JSON text to a `Value`, for places without a schema.
//!
//! Iterative: 10,000 levels of nesting cost heap, not stack.

use super::keys::SeenKeys;
use super::lexer::{AFTER_ELEMENT, AFTER_MEMBER, Lexer, Token};
use super::number;
use super::strict::{StrictError, StrictErrors, Strictness};
use super::{DecodeError, SyntaxError};
use bytes::Bytes;
use kubelith_meta::{Key, Map, Str, Value};
use std::fmt::Write;

/// A value and what strict decoding has to say about it.
#[derive(Debug, Default)]
pub struct Decoded {
    pub value: Value,
    pub strict: Vec<StrictError>,
}

/// Reads one JSON document. A repeated key keeps its last value.
pub fn parse(data: &[u8]) -> Result<Value, DecodeError> {
    parse_document(data, Strictness::Lenient).map(|d| d.value)
}

/// Reads an object as this server wrote it. `fieldsV1` of its managedFields stay text, which most readers pass on as it is.
pub fn parse_stored(data: &[u8]) -> Result<Value, DecodeError> {
    read_stored(data, Parts::None)
}

/// As `parse_stored`, of an object that is [finished](Map), sealed: its larger parts but for metadata are read when somebody looks
/// into them.
pub fn parse_finished(text: &Bytes) -> Result<Value, DecodeError> {
    let mut value = read_stored(text, Parts::OfObject(text))?;
    value.seal();
    Ok(value)
}

fn read_stored(data: &[u8], parts: Parts<'_>) -> Result<Value, DecodeError> {
    let mut lexer = Lexer::new(data);
    let mut parser = Parser::new(Strictness::Lenient);
    parser.fields = Fields::Raw;
    parser.parts = parts;
    let value = parser.value(&mut lexer, 0)?;
    lexer.end()?;
    match parser.bad_number {
        Some(text) => Err(DecodeError::number(&text)),
        None => Ok(value),
    }
}

/// The entries of a part that was left as text.
fn read_part(text: &Bytes) -> Vec<(Key, Value)> {
    match read_stored(text, Parts::OfPart(text)) {
        Ok(mut value @ Value::Object(_)) => {
            value.seal();
            std::mem::take(value.make_object()).into_own()
        }
        // Whoever goes on with less than there is would store that.
        other => panic!("a part of a stored object cannot be read: {other:?}"),
    }
}

/// Reads one JSON document and reports repeated keys.
pub fn parse_strict(data: &[u8]) -> Result<Decoded, DecodeError> {
    parse_document(data, Strictness::Report)
}

/// Reads one JSON document; repeated keys are reported if `strictness` asks for it.
pub fn parse_document(data: &[u8], strictness: Strictness) -> Result<Decoded, DecodeError> {
    let mut lexer = Lexer::new(data);
    let mut parser = Parser::new(strictness);
    let value = parser.value(&mut lexer, 0)?;
    lexer.end()?;
    match parser.bad_number {
        Some(text) => Err(DecodeError::number(&text)),
        None => Ok(Decoded { value, strict: parser.strict.into_vec() }),
    }
}

/// A patch as it was written: who applies it passes numbers on by their text.
#[derive(Debug, Default)]
pub struct PatchText {
    /// Numbers that would be printed in another way than they were written, and those that no double can hold, are
    /// [`Value::Raw`].
    pub value: Value,
    pub strict: Vec<StrictError>,
    /// Whether there are such numbers.
    pub has_raw_numbers: bool,
    /// The first number that no double can hold.
    pub bad_number: Option<String>,
}

/// Reads one JSON document with its numbers as they are written.
pub fn parse_patch(data: &[u8], strictness: Strictness) -> Result<PatchText, DecodeError> {
    let mut lexer = Lexer::new(data);
    let mut parser = Parser::new(strictness);
    parser.numbers = Numbers::AsWritten;
    let value = parser.value(&mut lexer, 0)?;
    lexer.end()?;
    let Parser { strict, bad_number, has_raw_numbers, .. } = parser;
    Ok(PatchText { value, strict: strict.into_vec(), has_raw_numbers, bad_number })
}

/// Checks that `data` is one JSON document.
pub fn validate(data: &[u8]) -> Result<(), SyntaxError> {
    let mut lexer = Lexer::new(data);
    lexer.skip_value(0)?;
    lexer.end()
}

/// The containers that are open, and their members so far on shared stacks: a finished container takes its
/// members in one allocation of the right size.
pub(crate) struct Parser<'p> {
    open: Vec<Open>,
    elements: Vec<Value>,
    members: Vec<(Key, Value)>,
    strictness: Strictness,
    fields: Fields,
    numbers: Numbers,
    parts: Parts<'p>,
    has_raw_numbers: bool,
    pub strict: StrictErrors,
    /// The first number that no double can hold. Syntax errors behind it come first.
    pub bad_number: Option<String>,
}

/// What becomes of `metadata.managedFields[].fieldsV1`.
#[derive(Clone, Copy, PartialEq)]
enum Fields {
    Tree,
    Raw,
}

/// Shorter parts are read as soon as they are sorted out.
const SHORT_PART: usize = 128;

/// Which objects are left as text, and of which text they are a part.
#[derive(Clone, Copy)]
enum Parts<'p> {
    None,
    /// Those in members of an API object, but not its metadata, which every write looks into.
    OfObject(&'p Bytes),
    /// Those in such a part.
    OfPart(&'p Bytes),
}

/// What becomes of numbers that are printed in another way than they were written.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Values,
    AsWritten,
}

/// What follows in an object.
#[derive(PartialEq)]
enum Next {
    Value,
    End,
}

enum Open {
    Array { start: usize },
    Object { start: usize, key: Key, seen: SeenKeys },
}

impl<'p> Parser<'p> {
    pub fn new(strictness: Strictness) -> Parser<'p> {
        Parser {
            open: Vec::new(),
            elements: Vec::new(),
            members: Vec::new(),
            strictness,
            fields: Fields::Tree,
            numbers: Numbers::Values,
            parts: Parts::None,
            has_raw_numbers: false,
            strict: StrictErrors::default(),
            bad_number: None,
        }
    }

    pub fn set_strictness(&mut self, strictness: Strictness) {
        self.strictness = strictness;
    }

    /// Reads one value that stands inside `depth` containers of the caller's.
    pub fn value(&mut self, lexer: &mut Lexer<'_>, depth: usize) -> Result<Value, SyntaxError> {
        loop {
            if self.fields == Fields::Raw && self.is_at_fields() && lexer.peek() == Some(b'{') {
                let start = lexer.position();
                // What we wrote need not be looked at to be read over.
                let is_ours = !matches!(self.parts, Parts::None);
                if !is_ours || lexer.long_object(0).is_none() {
                    lexer.skip_fields(depth + self.open.len())?;
                }
                let value = match std::str::from_utf8(lexer.since(start)) {
                    Ok(text) => Value::Raw(text.into()),
                    Err(_) => super::raw(lexer.since(start))?,
                };
                match self.finish(lexer, value)? {
                    Some(value) => return Ok(value),
                    None => continue,
                }
            }
            if let Some(text) = self.text_of_parts()
                && let Some(part) = lexer.long_object(SHORT_PART)
            {
                let value = Value::Object(Map::of_text(text.slice(part), read_part));
                match self.finish(lexer, value)? {
                    Some(value) => return Ok(value),
                    None => continue,
                }
            }
            let value = match lexer.value(depth + self.open.len())? {
                Token::Null => Value::Null,
                Token::Bool(b) => Value::Bool(b),
                Token::String(s) => Value::String(Str::from(s)),
                Token::Number(n) => match number::untyped(n) {
                    Some(value @ Value::Int(_)) => value,
                    value => self.odd_number(n.text, value),
                },
                Token::BeginArray if lexer.empty_array()? => Value::Array(Vec::new()),
                Token::BeginArray => {
                    self.open.push(Open::Array { start: self.elements.len() });
                    continue;
                }
                Token::BeginObject if lexer.empty_object()? => Value::object(),
                Token::BeginObject => {
                    let (start, key) = (self.members.len(), Key::default());
                    self.open.push(Open::Object { start, key, seen: SeenKeys::default() });
                    match self.next_member(lexer)? {
                        Next::Value => continue,
                        Next::End => self.close_object(),
                    }
                }
            };
            if let Some(value) = self.finish(lexer, value)? {
                return Ok(value);
            }
        }
    }

    /// A number that is not an integer, or none that can be held.
    #[cold]
    fn odd_number(&mut self, text: &str, value: Option<Value>) -> Value {
        if value.is_none() {
            self.bad_number.get_or_insert_with(|| text.to_owned());
        }
        if self.numbers == Numbers::AsWritten && !value.as_ref().is_some_and(|v| number::is_written_as(v, text)) {
            self.has_raw_numbers = true;
            return Value::Raw(text.into());
        }
        value.unwrap_or_default()
    }

    /// The text that objects are left in where the parser is.
    fn text_of_parts(&self) -> Option<&'p Bytes> {
        match (self.parts, self.open.first()?) {
            (Parts::OfObject(_), Open::Object { key, .. }) if key.as_str() == "metadata" => None,
            (Parts::OfObject(text) | Parts::OfPart(text), _) => Some(text),
            (Parts::None, _) => None,
        }
    }

    fn is_at_fields(&self) -> bool {
        let [Open::Object { key: a, .. }, Open::Object { key: b, .. }, Open::Array { .. }, Open::Object { key: c, .. }] =
            &self.open[..]
        else {
            return false;
        };
        c.as_str() == "fieldsV1" && b.as_str() == "managedFields" && a.as_str() == "metadata"
    }

    /// Puts a finished value into its container, and containers that end with it into theirs. Returns the
    /// value if nothing is open any more, `None` if another value follows.
    fn finish(&mut self, lexer: &mut Lexer<'_>, mut value: Value) -> Result<Option<Value>, SyntaxError> {
        loop {
            match self.open.last_mut() {
                None => return Ok(Some(value)),
                Some(Open::Array { start }) => {
                    let start = *start;
                    self.elements.push(value);
                    if lexer.more(b']', AFTER_ELEMENT)? {
                        return Ok(None);
                    }
                    value = Value::Array(self.elements.split_off(start));
                }
                Some(Open::Object { key, .. }) => {
                    self.members.push((std::mem::take(key), value));
                    if lexer.more(b'}', AFTER_MEMBER)? && self.next_member(lexer)? == Next::Value {
                        return Ok(None);
                    }
                    value = self.close_object();
                    continue;
                }
            }
            self.open.pop();
        }
    }

    /// The object that is open, with the members it has.
    fn close_object(&mut self) -> Value {
        let Some(Open::Object { start, .. }) = self.open.pop() else { return Value::Null };
        Value::Object(Map::from_unsorted(self.members.split_off(start)))
    }

    /// Reads members of the innermost object up to one that is no string, of which it reads the key. Most members are strings: they
    /// take no way about the stack.
    fn next_member(&mut self, lexer: &mut Lexer<'_>) -> Result<Next, SyntaxError> {
        loop {
            let name = lexer.key()?;
            let Some(Open::Object { start, key, seen }) = self.open.last_mut() else { return Ok(Next::End) };
            let repeats = self.strictness == Strictness::Report && seen.repeats(&self.members[*start..], &name);
            let next = Key::new(Str::from(name));
            if repeats || lexer.peek() != Some(b'"') {
                *key = next;
                if repeats && self.strict.has_room() {
                    let path = self.path();
                    self.strict.add(StrictError::DuplicateField(path));
                }
                return Ok(Next::Value);
            }
            self.members.push((next, Value::String(Str::from(lexer.string()?))));
            if !lexer.more(b'}', AFTER_MEMBER)? {
                return Ok(Next::End);
            }
        }
    }

    /// Where the parser is: `spec.list[3].key`.
    fn path(&self) -> String {
        let mut path = String::new();
        for (i, open) in self.open.iter().enumerate() {
            match open {
                Open::Object { key, .. } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Open::Array { start } => {
                    let end = self.open[i + 1..]
                        .iter()
                        .find_map(|o| if let Open::Array { start } = o { Some(*start) } else { None })
                        .unwrap_or(self.elements.len());
                    write!(path, "[{}]", end - start).expect("writing to a String cannot fail");
                }
            }
        }
        path
    }
}
