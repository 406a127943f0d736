//! What messages are made of: values, or JSON text in which nobody has looked yet.

use crate::json;
use kubelith_meta::keys::Head;
use kubelith_meta::{Key, Map, Value};

/// What the encoder has to tell apart of values that are not what their type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Null,
    Object,
    List,
    Scalar,
}

/// A value to be encoded. What is asked for in another form than it has is `None` or nothing.
pub(super) trait Source<'v>: Copy {
    fn form(self) -> Form;
    fn as_bool(self) -> Option<bool>;
    fn as_i64(self) -> Option<i64>;
    fn as_f64(self) -> Option<f64>;
    fn as_str(self) -> Option<&'v str>;
    fn items(self) -> impl Iterator<Item = Self>;

    /// The members of an object: in the order of their names, each once, if it [`is_sorted`](Source::is_sorted).
    fn members(self) -> impl Iterator<Item = (Head, &'v str, Self)>;

    /// How many members there are.
    fn len(self) -> usize;

    /// Only the members of a whole API object may be in another order, and a later one of the same name counts.
    fn is_sorted(self) -> bool;

    fn write_json(self, out: &mut Vec<u8>);

    /// The text of an object that would have to be read to be looked into.
    fn unread(self) -> Option<&'v [u8]>;
}

impl<'v> Source<'v> for &'v Value {
    #[inline]
    fn form(self) -> Form {
        match self {
            Value::Null => Form::Null,
            Value::Object(_) => Form::Object,
            Value::Array(_) => Form::List,
            _ => Form::Scalar,
        }
    }

    #[inline]
    fn as_bool(self) -> Option<bool> {
        Value::as_bool(self)
    }

    #[inline]
    fn as_i64(self) -> Option<i64> {
        Value::as_i64(self)
    }

    #[inline]
    fn as_f64(self) -> Option<f64> {
        Value::as_f64(self)
    }

    #[inline]
    fn as_str(self) -> Option<&'v str> {
        Value::as_str(self)
    }

    #[inline]
    fn items(self) -> impl Iterator<Item = Self> {
        self.as_array().unwrap_or_default().iter()
    }

    #[inline]
    fn members(self) -> impl Iterator<Item = (Head, &'v str, Self)> {
        let entries: &[(Key, Value)] = self.as_object().map(|map| map.entries()).unwrap_or_default();
        entries.iter().map(|(key, value)| (key.head(), key.as_str(), value))
    }

    #[inline]
    fn len(self) -> usize {
        self.as_object().map_or(0, Map::len)
    }

    #[inline]
    fn is_sorted(self) -> bool {
        true
    }

    fn write_json(self, out: &mut Vec<u8>) {
        json::write(out, self);
    }

    #[inline]
    fn unread(self) -> Option<&'v [u8]> {
        self.as_object()?.unread().map(|text| &text[..])
    }
}
