//! JSON pointers of patch operations and the containers they lead to.

use super::container;
use kubelith_meta::text::quote;
use kubelith_meta::{Map, Value};
use std::borrow::Cow;

/// A path split at its slashes; the text before the first slash does not count.
pub(super) struct Pointer<'a> {
    parts: Vec<&'a str>,
}

impl<'a> Pointer<'a> {
    pub(super) fn parse(path: &'a str) -> Pointer<'a> {
        Pointer { parts: path.split('/').skip(1).collect() }
    }

    /// How deep the value stands that this points to.
    pub(super) fn depth(&self) -> usize {
        self.parts.len()
    }

    /// The container of the value this points to, and its key in there. `None` if there is no such container.
    pub(super) fn find<'d>(&self, doc: &'d mut Value) -> Option<(Container<'d>, Cow<'a, str>)> {
        let (last, parents) = self.parts.split_last()?;
        let mut at = container(doc)?;
        for part in parents {
            at = container(at.into_member(&unescape(part))?)?;
        }
        Some((at, unescape(last)))
    }
}

fn unescape(part: &str) -> Cow<'_, str> {
    if part.contains('~') {
        // One pass from the left: `~01` is the text `~1`.
        let mut out = String::with_capacity(part.len());
        let mut rest = part;
        while let Some(i) = rest.find('~') {
            out.push_str(&rest[..i]);
            let (text, skip) = match rest.as_bytes().get(i + 1) {
                Some(b'0') => ('~', 2),
                Some(b'1') => ('/', 2),
                _ => ('~', 1),
            };
            out.push(text);
            rest = &rest[i + skip..];
        }
        out.push_str(rest);
        Cow::Owned(out)
    } else {
        Cow::Borrowed(part)
    }
}

pub(super) enum Container<'d> {
    Object(&'d mut Map),
    Array(&'d mut Vec<Value>),
}

impl<'d> Container<'d> {
    fn into_member(self, key: &str) -> Option<&'d mut Value> {
        match self {
            Container::Object(m) => m.get_mut(key),
            Container::Array(a) => {
                let i = existing_index(key, a.len()).ok()?;
                a.get_mut(i)
            }
        }
    }

    /// The member, `None` if an object has none of that name.
    pub(super) fn get(&self, key: &str) -> Result<Option<&Value>, String> {
        match self {
            Container::Object(m) => Ok(m.get(key)),
            Container::Array(a) => existing_index(key, a.len()).map(|i| a.get(i)),
        }
    }

    /// Inserts into a list, sets in an object.
    pub(super) fn add(self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Container::Object(m) => {
                m.insert(key, value);
            }
            Container::Array(a) if key == "-" => a.push(value),
            Container::Array(a) => {
                let i = parse_index(key).map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
                let i = position(i, a.len() + 1)?;
                a.insert(i, value);
            }
        }
        Ok(())
    }

    /// Replaces an element of a list, sets in an object.
    pub(super) fn set(self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Container::Object(m) => {
                m.insert(key, value);
            }
            Container::Array(a) => {
                let i = existing_index(key, a.len())?;
                a[i] = value;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, key: &str) -> Result<Value, String> {
        match self {
            Container::Object(m) => {
                m.remove(key).ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value"))
            }
            Container::Array(a) => existing_index(key, a.len()).map(|i| a.remove(i)),
        }
    }
}

fn existing_index(key: &str, len: usize) -> Result<usize, String> {
    position(parse_index(key)?, len)
}

/// An index into `len` places; negative ones count from the end.
fn position(index: i64, len: usize) -> Result<usize, String> {
    let len = len as i64;
    let at = if index < 0 { index + len } else { index };
    if (0..len).contains(&at) {
        Ok(at as usize)
    } else {
        Err(format!("Unable to access invalid index: {index}: invalid index referenced"))
    }
}

/// `strconv.Atoi`: a sign is allowed, so are leading zeros.
fn parse_index(key: &str) -> Result<i64, String> {
    key.parse::<i64>().map_err(|e| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let what = match e.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {what}", quote(key))
    })
}
