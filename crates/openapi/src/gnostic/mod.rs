//! Documents as protobuf, in the messages of gnostic, which is what kubectl reads. The messages are tables (`v2`,
//! `v3`): which JSON member goes into which field, in what form. Here is how any of them is written.

pub mod v2;
pub mod v3;

use kubelith_codec::yaml;
use kubelith_meta::{Map, Value};

/// A type of message.
pub enum Message {
    /// The members of an object, each with its field, by ascending number; those that begin with `x-` go into the
    /// last one.
    Fields(&'static [(&'static str, u32, Form)], u32),
    /// A reference is 2, anything else is 1.
    OrReference(&'static Message),
    /// A boolean is 2, anything else is 1.
    OrFlag(&'static Message),
    /// Field 1 is the value, or each of its elements.
    Boxed(Form),
    /// The members of an object, each a message in the same field, with its name as 1 and its value as 2.
    Named(u32, &'static Message),
    /// One of several others, under its number.
    Chosen(fn(&Value) -> (u32, &'static Message)),
    /// A number is 1, a boolean 2, a string 3; of anything else nothing is said.
    Default,
    /// Any value, as YAML in field 2.
    Any,
}

/// How a value is written into a field.
pub enum Form {
    Text,
    Texts,
    Flag,
    Double,
    Integer,
    One(&'static Message),
    Many(&'static Message),
}

impl Message {
    /// Appends the content of the message.
    pub fn write(&self, out: &mut Vec<u8>, value: &Value) {
        match self {
            Message::Fields(fields, extensions) => {
                let Some(object) = value.as_object() else { return };
                for (name, number, form) in *fields {
                    if let Some(value) = object.get(name) {
                        form.write(out, *number, value);
                    }
                }
                write_extensions(out, *extensions, object);
            }
            Message::OrReference(message) => match value.get("$ref").and_then(Value::as_str) {
                Some(target) => nested(out, 2, |out| text(out, 1, target)),
                None => nested(out, 1, |out| message.write(out, value)),
            },
            Message::OrFlag(message) => match value {
                Value::Bool(flag) => integer(out, 2, i64::from(*flag)),
                _ => nested(out, 1, |out| message.write(out, value)),
            },
            Message::Boxed(form) => form.write(out, 1, value),
            Message::Named(number, message) => {
                for (name, value) in value.as_object().into_iter().flat_map(Map::iter) {
                    named(out, *number, name, message, value);
                }
            }
            Message::Chosen(choose) => {
                let (number, message) = choose(value);
                nested(out, number, |out| message.write(out, value));
            }
            Message::Default => match value {
                Value::Bool(flag) => integer(out, 2, i64::from(*flag)),
                Value::String(s) => text(out, 3, s),
                number => {
                    if let Some(number) = number.as_f64() {
                        double(out, 1, number);
                    }
                }
            },
            Message::Any => nested(out, 2, |out| yaml::write(out, value)),
        }
    }
}

impl Form {
    /// Appends a field. Zero values are left out, as proto3 does.
    fn write(&self, out: &mut Vec<u8>, number: u32, value: &Value) {
        let elements = || match value {
            Value::Array(elements) => elements.as_slice(),
            one => std::slice::from_ref(one),
        };
        match self {
            Form::Text => match value.as_str() {
                Some(s) if !s.is_empty() => text(out, number, s),
                _ => {}
            },
            Form::Texts => elements().iter().filter_map(Value::as_str).for_each(|s| text(out, number, s)),
            Form::Flag if value.as_bool() == Some(true) => integer(out, number, 1),
            Form::Flag => {}
            Form::Double => match value.as_f64() {
                Some(d) if d != 0.0 => double(out, number, d),
                _ => {}
            },
            Form::Integer => match value.as_i64() {
                Some(i) if i != 0 => integer(out, number, i),
                _ => {}
            },
            Form::One(message) => nested(out, number, |out| message.write(out, value)),
            Form::Many(message) => {
                elements().iter().for_each(|element| nested(out, number, |out| message.write(out, element)));
            }
        }
    }
}

/// A member of a map: its name and its value.
pub fn named(out: &mut Vec<u8>, number: u32, name: &str, message: &Message, value: &Value) {
    nested(out, number, |out| {
        text(out, 1, name);
        nested(out, 2, |out| message.write(out, value));
    });
}

fn write_extensions(out: &mut Vec<u8>, number: u32, object: &Map) {
    for (name, value) in object.iter().filter(|(name, _)| name.starts_with("x-")) {
        named(out, number, name, &Message::Any, value);
    }
}

/// A field that holds a message, whose length comes first: it is written behind, then moved.
pub fn nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    bytes(out, number, &inner);
}

pub fn text(out: &mut Vec<u8>, number: u32, text: &str) {
    bytes(out, number, text.as_bytes());
}

fn bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn integer(out: &mut Vec<u8>, number: u32, value: i64) {
    varint(out, u64::from(number) << 3);
    varint(out, value as u64);
}

fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests;
