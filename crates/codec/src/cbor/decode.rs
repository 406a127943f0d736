//! CBOR to values: what JSON can express, and no more.

use super::major;
use crate::base64;
use crate::error::DecodeError;
use base64_engine::Engine;
use kubelith_meta::time::Time;
use kubelith_meta::{Map, Value};
use std::collections::HashSet;

use ::base64 as base64_engine;

/// How deep arrays and maps may be nested: far deeper than any object, and shallow enough for the stack.
const MAX_DEPTH: usize = 512;

/// One document and nothing behind it.
pub fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (value, rest) = split_first(bytes)?;
    match rest.is_empty() {
        true => Ok(value),
        false => {
            let left = rest.len();
            Err(DecodeError::malformed(format!(
                "cbor: {left} bytes of extraneous data starting at index {}",
                bytes.len() - left
            )))
        }
    }
}

/// The first document of a sequence, and what stands behind it.
pub fn split_first(bytes: &[u8]) -> Result<(Value, &[u8]), DecodeError> {
    if bytes.is_empty() {
        return malformed("EOF");
    }
    let mut reader = Reader { rest: bytes };
    let value = reader.value(0, Tag::None)?;
    Ok((value, reader.rest))
}

/// What a tag says about the byte string behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    None,
    Base64Url,
    Base64,
    Hex,
    Epoch,
}

struct Reader<'a> {
    rest: &'a [u8],
}

/// The argument of a head; lengths may be open.
enum Argument {
    Known(u64),
    Open,
}

fn malformed<T>(why: impl Into<String>) -> Result<T, DecodeError> {
    Err(DecodeError::Malformed(why.into()))
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else { return malformed("unexpected EOF") };
        self.rest = rest;
        Ok(taken)
    }

    fn head(&mut self) -> Result<(u8, u8, Argument), DecodeError> {
        let Some((&first, rest)) = self.rest.split_first() else {
            return malformed("unexpected EOF");
        };
        self.rest = rest;
        let (major, low) = (first >> 5, first & 31);
        let argument = match low {
            0..=23 => Argument::Known(u64::from(low)),
            24..=27 => {
                let content = self.take(1 << (low - 24))?;
                Argument::Known(content.iter().fold(0, |n, b| (n << 8) | u64::from(*b)))
            }
            31 if matches!(major, major::BYTES | major::TEXT | major::ARRAY | major::MAP | major::SIMPLE) => {
                Argument::Open
            }
            _ => return malformed(format!("cbor: invalid additional information {low} for type {major}")),
        };
        Ok((major, low, argument))
    }

    fn value(&mut self, depth: usize, tag: Tag) -> Result<Value, DecodeError> {
        if depth > MAX_DEPTH {
            return malformed(format!("cbor: exceeded max nested level {MAX_DEPTH}"));
        }
        let (major, low, argument) = self.head()?;
        match (major, argument) {
            (major::UNSIGNED, Argument::Known(n)) => match i64::try_from(n) {
                Ok(n) if tag == Tag::Epoch => time(n as f64),
                Ok(n) => Ok(Value::Int(n)),
                Err(_) => malformed(format!(
                    "cbor: cannot unmarshal positive integer into Go value of type int64 ({n} overflows Go's int64)"
                )),
            },
            (major::NEGATIVE, Argument::Known(n)) => match i64::try_from(n) {
                Ok(n) if tag == Tag::Epoch => time((-1 - n) as f64),
                Ok(n) => Ok(Value::Int(-1 - n)),
                Err(_) => malformed(format!(
                    "cbor: cannot unmarshal negative integer into Go value of type int64 (-1-{n} overflows Go's int64)"
                )),
            },
            (major::BYTES | major::TEXT, length) => {
                let content = self.string(major, length)?;
                self.text(major, content, tag)
            }
            (major::ARRAY, length) => self.array(length, depth),
            (major::MAP, length) => self.map(length, depth),
            (major::TAG, Argument::Known(tag)) => {
                let tag = match tag {
                    1 => Tag::Epoch,
                    2 | 3 => {
                        return malformed("cbor: data item of cbor type tag is not accepted by protocol: bignum");
                    }
                    21 => Tag::Base64Url,
                    22 => Tag::Base64,
                    23 => Tag::Hex,
                    // A time in words, "this is CBOR", and all that says nothing about the content.
                    _ => Tag::None,
                };
                self.value(depth + 1, tag)
            }
            (_, Argument::Known(argument)) => simple(low, argument, tag),
            (_, Argument::Open) => malformed("cbor: unexpected \"break\" code"),
        }
    }

    /// The content of a string, whole or in parts.
    fn string(&mut self, major: u8, length: Argument) -> Result<Vec<u8>, DecodeError> {
        match length {
            Argument::Known(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                Ok(self.take(length)?.to_vec())
            }
            Argument::Open => {
                let mut all = Vec::new();
                while !self.at_break() {
                    match self.head()? {
                        (part, _, Argument::Known(length)) if part == major => {
                            all.extend_from_slice(self.take(usize::try_from(length).unwrap_or(usize::MAX))?);
                        }
                        _ => return malformed("cbor: wrong element type in indefinite-length string"),
                    }
                }
                Ok(all)
            }
        }
    }

    fn text(&self, major: u8, content: Vec<u8>, tag: Tag) -> Result<Value, DecodeError> {
        let encoded = match (major, tag) {
            (major::BYTES, Tag::Base64) => base64::encode(&content),
            (major::BYTES, Tag::Base64Url) => base64_engine::engine::general_purpose::URL_SAFE_NO_PAD.encode(&content),
            (major::BYTES, Tag::Hex) => content.iter().map(|b| format!("{b:02x}")).collect(),
            _ => return string(content).map(|text| Value::String(text.into())),
        };
        Ok(Value::String(encoded.into()))
    }

    fn array(&mut self, length: Argument, depth: usize) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        match length {
            Argument::Known(length) => {
                for _ in 0..length {
                    items.push(self.value(depth + 1, Tag::None)?);
                }
            }
            Argument::Open => {
                while !self.at_break() {
                    items.push(self.value(depth + 1, Tag::None)?);
                }
            }
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, length: Argument, depth: usize) -> Result<Value, DecodeError> {
        // Sorted once at the end, as JSON's: members may come in any order, and there may be very many.
        let mut members: Vec<(String, Value)> = Vec::new();
        let mut known = HashSet::new();
        loop {
            let index = members.len();
            let ends = match length {
                Argument::Known(length) => index as u64 == length,
                Argument::Open => self.at_break(),
            };
            if ends {
                return Ok(Value::Object(members.into_iter().collect::<Map>()));
            }
            let key = match self.head()? {
                (major @ (major::BYTES | major::TEXT), _, length) => string(self.string(major, length)?)?,
                _ => return malformed("cbor: invalid map key type"),
            };
            let value = self.value(depth + 1, Tag::None)?;
            if !known.insert(key.clone()) {
                return malformed(format!("cbor: found duplicate map key {key:?} at map element index {index}"));
            }
            members.push((key, value));
        }
    }

    /// Takes the end of an open length, if it stands here.
    fn at_break(&mut self) -> bool {
        match self.rest.split_first() {
            Some((0xff, rest)) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }
}

fn string(content: Vec<u8>) -> Result<String, DecodeError> {
    String::from_utf8(content).or_else(|_| malformed("cbor: invalid UTF-8 string"))
}

/// The low bits tell a number from a simple value.
fn simple(low: u8, argument: u64, tag: Tag) -> Result<Value, DecodeError> {
    let number = match low {
        20 => return Ok(Value::Bool(false)),
        21 => return Ok(Value::Bool(true)),
        22 => return Ok(Value::Null),
        25 => half(argument as u16),
        26 => f64::from(f32::from_bits(argument as u32)),
        27 => f64::from_bits(argument),
        _ => {
            return malformed(format!(
                "cbor: data item of cbor type primitives is not accepted by protocol: simple value {argument} is not recognized"
            ));
        }
    };
    match number {
        n if n.is_nan() => malformed("cbor: cannot unmarshal floating-point NaN"),
        n if n.is_infinite() => malformed("cbor: cannot unmarshal floating-point infinity"),
        n if tag == Tag::Epoch => time(n),
        n => Ok(Value::Float(n)),
    }
}

fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from((bits >> 10) & 31), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Seconds since 1970 as the text that JSON has for a time.
fn time(seconds: f64) -> Result<Value, DecodeError> {
    // The years 1 to 9999.
    match (-62_135_596_800.0..253_402_300_800.0).contains(&seconds) {
        true => Ok(Value::String(Time::from_unix(seconds.floor() as i64).rfc3339().into())),
        false => malformed("cbor: time out of range"),
    }
}
