//! Amounts of resources, as they are read.

use crate::defaults::is_absent;
use kubelith_meta::quantity::MILLI;
use kubelith_meta::{Map, Quantity, Value};

/// Brings the amounts in these members to whole thousandths.
pub fn round_up(map: &mut Map, members: &[&str]) {
    for member in members {
        let Some(Value::Object(amounts)) = map.get_mut(member) else { continue };
        for (_, amount) in amounts.iter_mut() {
            if amount.as_str().is_some_and(may_need_rounding) {
                round(amount);
            }
        }
    }
}

/// Only fractions, exponents and the suffixes n and u can be finer than a thousandth.
fn may_need_rounding(text: &str) -> bool {
    text.bytes().any(|b| matches!(b, b'.' | b'n' | b'u' | b'e' | b'E'))
}

fn round(amount: &mut Value) {
    let Some(Ok(mut quantity)) = amount.as_str().map(Quantity::parse) else { return };
    quantity.round_up(MILLI);
    let rounded = quantity.to_string();
    if amount.as_str() != Some(&rounded) {
        *amount = Value::from(rounded);
    }
}

/// Adds the amounts of `from` that `map[member]` lacks. A map without any stays as it is.
pub fn complete(map: &mut Map, member: &str, from: &Map) {
    if from.keys().all(|name| map.get(member).is_some_and(|m| m.get(name).is_some())) {
        return;
    }
    let to = map.entry_or_null(member).make_object();
    for (name, amount) in from.iter() {
        if !to.contains_key(name) {
            to.insert(name, amount.clone());
        }
    }
}

/// Copies a list of amounts that is not given at all.
pub fn copy_absent(map: &mut Map, from: &str, to: &str) {
    if is_absent(map, to)
        && let Some(amounts) = map.get(from).filter(|v| !v.is_null()).cloned()
    {
        map.insert(to, amounts);
    }
}
