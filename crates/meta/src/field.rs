//! Where in an object something is wrong, and what: field paths, field errors and lists of them.
//!
//! A path is a chain of borrowed frames on the stack: walking a valid object allocates nothing, and only an
//! error renders its path.

use crate::text;
use crate::{Str, Value};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The way from the root of an object to a field. `Path::new("spec").child("ports").index(0)` reads
/// `spec.ports[0]`. Each step borrows the one before; [`Path::item`] and [`Path::entry`] take two steps at
/// once so that a loop needs only one binding.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// The object itself. Renders as `<nil>` alone, which is what the reference prints for an absent path.
    Root,
    Name(&'a str),
    Names(&'a [&'a str]),
    Index(usize),
    Key(&'a str),
    Item(&'a str, usize),
    Entry(&'a str, &'a str),
}

impl<'a> Path<'a> {
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub const fn new(name: &'a str) -> Path<'a> {
        Path { parent: None, step: Step::Name(name) }
    }

    /// Several names at once: `Path::of(&["spec", "template"])` is `spec.template`.
    pub const fn of(names: &'a [&'a str]) -> Path<'a> {
        Path { parent: None, step: Step::Names(names) }
    }

    const fn step<'b>(&'b self, step: Step<'b>) -> Path<'b> {
        Path { parent: Some(self), step }
    }

    pub const fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        self.step(Step::Name(name))
    }

    pub const fn children<'b>(&'b self, names: &'b [&'b str]) -> Path<'b> {
        self.step(Step::Names(names))
    }

    /// An element of a list.
    pub const fn index(&self, index: usize) -> Path<'_> {
        self.step(Step::Index(index))
    }

    /// An entry of a map.
    pub const fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        self.step(Step::Key(key))
    }

    /// `path.child(name).index(index)`.
    pub const fn item<'b>(&'b self, name: &'b str, index: usize) -> Path<'b> {
        self.step(Step::Item(name, index))
    }

    /// `path.child(name).key(key)`.
    pub const fn entry<'b>(&'b self, name: &'b str, key: &'b str) -> Path<'b> {
        self.step(Step::Entry(name, key))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

impl Path<'_> {
    fn render(&self) -> String {
        let mut steps = Vec::with_capacity(8);
        let mut next = Some(self);
        while let Some(path) = next {
            steps.push(path.step);
            next = path.parent;
        }
        let mut out = String::new();
        for step in steps.iter().rev() {
            match *step {
                Step::Root => {}
                Step::Name(name) => push_name(&mut out, name),
                Step::Names(names) => names.iter().for_each(|name| push_name(&mut out, name)),
                Step::Index(i) => push_subscript(&mut out, i),
                Step::Key(key) => push_subscript(&mut out, key),
                Step::Item(name, i) => {
                    push_name(&mut out, name);
                    push_subscript(&mut out, i);
                }
                Step::Entry(name, key) => {
                    push_name(&mut out, name);
                    push_subscript(&mut out, key);
                }
            }
        }
        if out.is_empty() {
            out.push_str("<nil>");
        }
        out
    }
}

fn push_name(out: &mut String, name: &str) {
    if name.is_empty() {
        // The reference cannot tell an empty name from an empty subscript.
        return push_subscript(out, "");
    }
    if !out.is_empty() {
        out.push('.');
    }
    out.push_str(name);
}

fn push_subscript(out: &mut String, subscript: impl fmt::Display) {
    use fmt::Write;
    write!(out, "[{subscript}]").expect("writing to a String cannot fail");
}

/// What is wrong with a field. The name of a kind is the `reason` of the cause that a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooShort,
    TooMany,
    TooFew,
    Internal,
    TypeInvalid,
}

impl ErrorKind {
    /// The machine-readable name, as in `details.causes[].reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooShort => "FieldValueTooShort",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::TooFew => "FieldValueTooFew",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The words that open the message.
    const fn title(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "Not found",
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooShort => "Too short",
            ErrorKind::TooMany => "Too many",
            ErrorKind::TooFew => "Too few",
            ErrorKind::Internal => "Internal error",
        }
    }

    const fn shows_value(self) -> bool {
        !matches!(
            self,
            ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong | ErrorKind::TooShort | ErrorKind::Internal
        )
    }
}

/// The value that a message shows. Strings are quoted as Go's `%q`, numbers and booleans printed plainly,
/// everything else as JSON; [`BadValue::json`] and [`BadValue::text`] choose otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum BadValue {
    /// Not shown.
    Omitted,
    /// Shown as it is, already rendered.
    Text(String),
    Value(Value),
}

impl BadValue {
    /// Shown as JSON even if it is a string: what the reference prints for values of named string types and
    /// pointers, e.g. a Protocol or a Quantity.
    pub fn json(value: impl Into<Value>) -> BadValue {
        BadValue::Text(text::json(&value.into()))
    }

    pub fn text(text: impl Into<String>) -> BadValue {
        BadValue::Text(text.into())
    }

    fn render(&self) -> Option<String> {
        match self {
            BadValue::Omitted => None,
            BadValue::Text(text) => Some(text.clone()),
            BadValue::Value(Value::String(s)) => Some(text::quote(s)),
            BadValue::Value(Value::Float(f)) => Some(text::float_v(*f)),
            BadValue::Value(v) => Some(text::json(v)),
        }
    }
}

impl<T: Into<Value>> From<T> for BadValue {
    fn from(value: T) -> BadValue {
        BadValue::Value(value.into())
    }
}

impl From<&Value> for BadValue {
    fn from(value: &Value) -> BadValue {
        BadValue::Value(value.clone())
    }
}

/// Something wrong with one field. `Display` is `path: what`, [`Error::body`] is `what` alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub kind: ErrorKind,
    /// The rendered path.
    pub field: Str,
    pub bad_value: BadValue,
    pub detail: String,
}

impl Error {
    fn new(kind: ErrorKind, path: &Path<'_>, bad_value: BadValue, detail: impl Into<String>) -> Error {
        Error { kind, field: path.render().into(), bad_value, detail: detail.into() }
    }

    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Required, path, BadValue::Omitted, detail)
    }

    pub fn invalid(path: &Path<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, path, value.into(), detail)
    }

    pub fn type_invalid(path: &Path<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::TypeInvalid, path, value.into(), detail)
    }

    /// The value is none of `supported`, which the message lists in the order given.
    pub fn not_supported<S: AsRef<str>>(
        path: &Path<'_>,
        value: impl Into<BadValue>,
        supported: impl IntoIterator<Item = S>,
    ) -> Error {
        let quoted: Vec<String> = supported.into_iter().map(|s| text::quote(s.as_ref())).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Error::new(ErrorKind::NotSupported, path, value.into(), detail)
    }

    pub fn duplicate(path: &Path<'_>, value: impl Into<BadValue>) -> Error {
        Error::new(ErrorKind::Duplicate, path, value.into(), "")
    }

    pub fn not_found(path: &Path<'_>, value: impl Into<BadValue>) -> Error {
        Error::new(ErrorKind::NotFound, path, value.into(), "")
    }

    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Forbidden, path, BadValue::Omitted, detail)
    }

    pub fn internal(path: &Path<'_>, error: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Internal, path, BadValue::Omitted, error.to_string())
    }

    /// More bytes than `max`.
    pub fn too_long(path: &Path<'_>, max: usize) -> Error {
        let detail = format!("may not be more than {max} {}", plural(max, "byte", "bytes"));
        Error::new(ErrorKind::TooLong, path, BadValue::Omitted, detail)
    }

    /// More characters than `max`.
    pub fn too_long_characters(path: &Path<'_>, max: usize) -> Error {
        let detail = format!("may not be more than {max} {}", plural(max, "character", "characters"));
        Error::new(ErrorKind::TooLong, path, BadValue::Omitted, detail)
    }

    /// Too long, for a limit that is not told.
    pub fn too_long_unspecified(path: &Path<'_>) -> Error {
        Error::new(ErrorKind::TooLong, path, BadValue::Omitted, "value is too long")
    }

    /// Fewer characters than `min`.
    pub fn too_short(path: &Path<'_>, min: usize) -> Error {
        let detail = format!("must be at least {min} {}", plural(min, "character", "characters"));
        Error::new(ErrorKind::TooShort, path, BadValue::Omitted, detail)
    }

    pub fn too_many(path: &Path<'_>, actual: usize, max: usize) -> Error {
        let detail = format!("must have at most {max} {}", plural(max, "item", "items"));
        Error::new(ErrorKind::TooMany, path, count(actual), detail)
    }

    /// Too many items, where their number is not known or not told.
    pub fn too_many_of_unknown(path: &Path<'_>, max: usize) -> Error {
        Error { bad_value: BadValue::Omitted, ..Error::too_many(path, 0, max) }
    }

    pub fn too_few(path: &Path<'_>, actual: usize, min: usize) -> Error {
        let detail = format!("must have at least {min} {}", plural(min, "item", "items"));
        Error::new(ErrorKind::TooFew, path, count(actual), detail)
    }

    /// The message without the path, as in `details.causes[].message`.
    pub fn body(&self) -> String {
        let mut body = self.kind.title().to_owned();
        if self.kind.shows_value()
            && let Some(value) = self.bad_value.render()
        {
            body.push_str(": ");
            body.push_str(&value);
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

fn plural(n: usize, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

fn count(n: usize) -> BadValue {
    BadValue::Value(Value::Int(n as i64))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for Error {}

/// All that is wrong with an object, in the order found. `Display` joins the messages, each once, in
/// brackets if there are several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorList(pub Vec<Error>);

impl ErrorList {
    pub const fn new() -> ErrorList {
        ErrorList(Vec::new())
    }

    /// `Ok` if nothing is wrong.
    pub fn into_result(self) -> Result<(), ErrorList> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Puts `prefix` before the detail of every error.
    pub fn prefix_detail(mut self, prefix: &str) -> ErrorList {
        for error in &mut self.0 {
            error.detail.insert_str(0, prefix);
        }
        self
    }
}

impl Deref for ErrorList {
    type Target = Vec<Error>;

    fn deref(&self) -> &Vec<Error> {
        &self.0
    }
}

impl DerefMut for ErrorList {
    fn deref_mut(&mut self) -> &mut Vec<Error> {
        &mut self.0
    }
}

impl IntoIterator for ErrorList {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ErrorList {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<Error> for ErrorList {
    fn from_iter<I: IntoIterator<Item = Error>>(iter: I) -> ErrorList {
        ErrorList(iter.into_iter().collect())
    }
}

impl From<Error> for ErrorList {
    fn from(error: Error) -> ErrorList {
        ErrorList(vec![error])
    }
}

impl From<Vec<Error>> for ErrorList {
    fn from(errors: Vec<Error>) -> ErrorList {
        ErrorList(errors)
    }
}

impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::aggregate(self.0.iter().map(Error::to_string)))
    }
}

impl std::error::Error for ErrorList {}

#[cfg(test)]
#[path = "field_tests.rs"]
mod tests;
