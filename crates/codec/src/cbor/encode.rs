//! Values to CBOR.

use super::{MAGIC, major};
use crate::json;
use kubelith_meta::Value;

/// The order in which the members of objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The same for the same value.
    Sorted,
    /// Beginning at any of them, by this number: answers have it, so that nobody comes to rely on an order.
    Turned(u64),
}

impl Order {
    /// Where a map of that many members begins.
    fn start(&mut self, members: usize) -> usize {
        match self {
            Order::Turned(state) if members > 1 => {
                // splitmix64
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((mixed ^ (mixed >> 31)) % members as u64) as usize
            }
            _ => 0,
        }
    }
}

/// A document: the value behind the tag that says what it is.
pub fn to_vec(value: &Value, mut order: Order) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    encode(&mut out, value, &mut order);
    out
}

/// The value alone, as it stands within others.
fn encode(out: &mut Vec<u8>, value: &Value, order: &mut Order) {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(false) => out.push(0xf4),
        Value::Bool(true) => out.push(0xf5),
        Value::Int(i) if *i >= 0 => head(out, major::UNSIGNED, i.unsigned_abs()),
        // -1 - n
        Value::Int(i) => head(out, major::NEGATIVE, i.unsigned_abs() - 1),
        Value::Float(f) => float(out, *f),
        Value::String(s) => bytes(out, s.as_bytes()),
        Value::Array(items) => {
            head(out, major::ARRAY, items.len() as u64);
            items.iter().for_each(|item| encode(out, item, order));
        }
        Value::Object(map) => {
            let mut entries: Vec<(&str, &Value)> = map.iter().collect();
            // Heads hold lengths, so shorter keys come first.
            entries.sort_unstable_by_key(|(key, _)| (key.len(), *key));
            let start = order.start(entries.len());
            entries.rotate_left(start);
            head(out, major::MAP, entries.len() as u64);
            for (key, value) in entries {
                bytes(out, key.as_bytes());
                encode(out, value, order);
            }
        }
        Value::Raw(text) => encode(out, &json::parse(text.as_bytes()).unwrap_or_default(), order),
    }
}

/// Strings are byte strings, which nobody has to check.
fn bytes(out: &mut Vec<u8>, content: &[u8]) {
    head(out, major::BYTES, content.len() as u64);
    out.extend_from_slice(content);
}

fn head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let first = major << 5;
    if argument < 24 {
        out.push(first | argument as u8);
    } else if let Ok(n) = u8::try_from(argument) {
        out.extend_from_slice(&[first | 24, n]);
    } else if let Ok(n) = u16::try_from(argument) {
        out.push(first | 25);
        out.extend_from_slice(&n.to_be_bytes());
    } else if let Ok(n) = u32::try_from(argument) {
        out.push(first | 26);
        out.extend_from_slice(&n.to_be_bytes());
    } else {
        out.push(first | 27);
        out.extend_from_slice(&argument.to_be_bytes());
    }
}

/// In the smallest width that keeps the value.
fn float(out: &mut Vec<u8>, f: f64) {
    let single = f as f32;
    if f64::from(single) != f {
        out.push(0xfb);
        out.extend_from_slice(&f.to_be_bytes());
        return;
    }
    match half(single) {
        Some(half) => {
            out.push(0xf9);
            out.extend_from_slice(&half.to_be_bytes());
        }
        None => {
            out.push(0xfa);
            out.extend_from_slice(&single.to_be_bytes());
        }
    }
}

/// The same number in 16 bits, if it fits.
fn half(f: f32) -> Option<u16> {
    let bits = f.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let (exponent, mantissa) = ((bits >> 23) & 0xff, bits & 0x007f_ffff);
    if exponent == 0 && mantissa == 0 {
        return Some(sign);
    }
    // The exponent as it is meant; halves have those from -14 to 15, and less with fewer digits.
    let exponent = exponent as i32 - 127;
    if (-14..=15).contains(&exponent) {
        return (mantissa & 0x1fff == 0).then(|| sign | (((exponent + 15) as u16) << 10) | (mantissa >> 13) as u16);
    }
    if (-24..-14).contains(&exponent) {
        let digits = mantissa | 0x0080_0000;
        let dropped = (-1 - exponent) as u32;
        return (digits & ((1 << dropped) - 1) == 0).then(|| sign | (digits >> dropped) as u16);
    }
    None
}
