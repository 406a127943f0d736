//! Values as Go's `%v` prints them in messages.

use super::Val;
use kubelith_meta::text::float_v;
use kubelith_meta::{Duration, Value};
use std::fmt;

impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A number to Go.
            Val::Null => f.write_str("0"),
            Val::Bool(b) => write!(f, "{b}"),
            Val::Int(i) => write!(f, "{i}"),
            Val::Uint(u) => write!(f, "{u}"),
            Val::Double(d) => f.write_str(&float_v(*d)),
            Val::Str(s) => f.write_str(s),
            Val::Text(s) => f.write_str(s),
            Val::Bytes(_) | Val::Blob(_) => {
                let bytes = self.as_bytes().unwrap_or_default();
                let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
                write!(f, "[{}]", numbers.join(" "))
            }
            Val::Duration(nanos) => write!(f, "{}", Duration::from_nanos(*nanos)),
            Val::Timestamp(t) => {
                let text = t.rfc3339();
                let (zone, name) = if t.offset == 0 { ("Z", "+0000 UTC".to_owned()) } else { zone(&text) };
                let body = text.strip_suffix(zone).unwrap_or(&text).replace('T', " ");
                write!(f, "{body} {name}")
            }
            Val::Type(name) => f.write_str(name),
            Val::Optional(None) => f.write_str("optional.none()"),
            Val::Optional(Some(of)) => write!(f, "optional({of})"),
            Val::Opaque(opaque) => write!(f, "{opaque}"),
            Val::Preserved(value) => write_go(f, value),
            Val::Object(_) | Val::Patch(_) => f.write_str(self.type_name()),
            _ => self.fmt_aggregate(f),
        }
    }
}

fn zone(text: &str) -> (&str, String) {
    let tail = &text[text.len().saturating_sub(6)..];
    let digits = tail.replace(':', "");
    (tail, format!("{digits} {digits}"))
}

impl Val<'_> {
    fn fmt_aggregate(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(list) = self.as_list() {
            f.write_str("[")?;
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                if let Ok(item) = item {
                    write!(f, "{item}")?;
                }
            }
            return f.write_str("]");
        }
        let Some(map) = self.as_map() else { return Ok(()) };
        f.write_str("{")?;
        for (i, (key, value)) in map.entries().into_iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{key}: ")?;
            if let Ok(value) = value {
                write!(f, "{value}")?;
            }
        }
        f.write_str("}")
    }
}

/// JSON as Go prints what it was decoded to.
fn write_go(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Null => f.write_str("<nil>"),
        Value::Bool(b) => write!(f, "{b}"),
        Value::Int(i) => write!(f, "{i}"),
        Value::Float(d) => f.write_str(&float_v(*d)),
        Value::String(s) => f.write_str(s),
        Value::Raw(text) => f.write_str(text),
        Value::Array(items) => {
            f.write_str("[")?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    f.write_str(" ")?;
                }
                write_go(f, item)?;
            }
            f.write_str("]")
        }
        Value::Object(map) => {
            f.write_str("map[")?;
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    f.write_str(" ")?;
                }
                write!(f, "{key}:")?;
                write_go(f, value)?;
            }
            f.write_str("]")
        }
    }
}
