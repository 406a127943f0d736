//! Cells of tables that no path gives: what their functions see, and what they share. A function sees the object in the version
//! that the request asked for, and what its arguments lead to. `None` leaves the cell to the column's `or`. Numbers are numbers where
//! the reference prints them so, whatever the column's type.

pub mod generic;
pub mod network;

use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};

/// What a function sees.
pub struct Row<'a> {
    pub object: &'a Value,
    pub arguments: &'a [Option<&'a Value>],
    pub now: Time,
}

pub type CellFn = fn(&Row<'_>) -> Option<Value>;

impl<'a> Row<'a> {
    /// What the first argument leads to, unless it is null.
    pub fn first(&self) -> Option<&'a Value> {
        self.arguments.first().copied().flatten().filter(|v| !v.is_null())
    }

    pub fn at(&self, path: &[&str]) -> Option<&'a Value> {
        self.object.at(path).filter(|v| !v.is_null())
    }

    pub fn text(&self, path: &[&str]) -> &'a str {
        self.object.str_at(path)
    }

    pub fn int(&self, path: &[&str]) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or(0)
    }

    pub fn list(&self, path: &[&str]) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).unwrap_or(&[])
    }

    pub fn is_deleted(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// `status.conditions`.
    pub fn conditions(&self) -> &'a [Value] {
        self.list(&["status", "conditions"])
    }

    /// How long ago a time was; nothing if there is none.
    pub fn age(&self, time: Option<&Value>) -> Option<Str> {
        age(time?.as_str()?, self.now)
    }
}

/// How long ago a time was; nothing for the zero time.
pub fn age(time: &str, now: Time) -> Option<Str> {
    if time.is_empty() {
        return None;
    }
    match Time::parse_micro(time).or_else(|_| Time::parse(time)) {
        Ok(time) if time.is_zero() => None,
        Ok(time) => Some(time.age(now).into()),
        Err(_) => Some("<invalid>".into()),
    }
}

pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or(&[])
}

pub fn int(value: &Value, path: &[&str]) -> i64 {
    value.at(path).and_then(Value::as_i64).unwrap_or(0)
}

/// Text members of all elements, with commas between them.
pub fn joined<'a>(texts: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    texts.into_iter().collect::<Vec<_>>().join(separator)
}

pub fn strings(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().map(|v| v.as_str().unwrap_or(""))
}

/// The first condition of a type.
pub fn condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|c| c.str_at(&["type"]) == kind)
}

/// Whether a condition is True.
pub fn holds(condition: &Value) -> bool {
    condition.str_at(&["status"]) == "True"
}

/// The first few of many, and how many more there are.
pub fn with_more(shown: &[impl AsRef<str>], more: usize) -> String {
    let shown = joined(shown.iter().map(AsRef::as_ref), ",");
    if more > 0 { format!("{shown} + {more} more...") } else { shown }
}

pub type Cells = &'static [(&'static str, CellFn)];
