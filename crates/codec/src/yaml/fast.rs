//! JSON that came as YAML. Only what both read alike; anything else goes the long way.

use crate::json::Strictness;
use crate::json::lexer::Lexer;
use crate::json::parse::Parser;
use kubelith_meta::Value;

/// The value of `data` if it is a JSON object that YAML reads the same way.
pub(super) fn read_json(data: &[u8]) -> Option<Value> {
    // White space before the first token is indentation to YAML, where tabs are not allowed.
    let first = data.iter().find(|&&b| !matches!(b, b' ' | b'\n' | b'\r'))?;
    if *first != b'{' || has_surprises(data) {
        return None;
    }
    let mut lexer = Lexer::new(data);
    let mut parser = Parser::new(Strictness::Report);
    let mut value = parser.value(&mut lexer, 0).ok()?;
    lexer.end().ok()?;
    if parser.bad_number.is_some() || !parser.strict.is_empty() || value.as_object()?.is_empty() {
        return None;
    }
    whole_floats_to_ints(&mut value).then_some(value)
}

/// Bytes that YAML refuses or reads differently: control characters, invalid UTF-8, escaped slashes, and escaped
/// surrogates, which YAML does not join to pairs.
fn has_surprises(data: &[u8]) -> bool {
    let escape = |i: usize| match data.get(i + 1) {
        Some(b'/') => true,
        Some(b'u') => matches!(data.get(i + 2), Some(b'd' | b'D')),
        _ => false,
    };
    memchr::memchr(0x7f, data).is_some()
        || memchr::memchr_iter(b'\\', data).any(escape)
        || match std::str::from_utf8(data) {
            Ok(text) => {
                !text.is_ascii()
                    && text.chars().any(|c| matches!(c, '\u{80}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'))
            }
            Err(_) => true,
        }
}

/// On its way through YAML a number loses how it was written: `1.0` and `1e2` arrive as 1 and 100. False if the
/// value is too deep to look at.
fn whole_floats_to_ints(value: &mut Value) -> bool {
    fn walk(value: &mut Value, depth: usize) -> bool {
        if depth > 100 {
            return false;
        }
        match value {
            Value::Float(f) => {
                if let Some(i) = super::scalar::whole(*f) {
                    *value = Value::Int(i);
                }
                true
            }
            Value::Array(items) => items.iter_mut().all(|item| walk(item, depth + 1)),
            Value::Object(members) => members.iter_mut().all(|(_, member)| walk(member, depth + 1)),
            _ => true,
        }
    }
    walk(value, 0)
}
