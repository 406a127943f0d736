//! Reading over a value without a look at what it says.

use super::lexer::plain_len;

/// How long the value is that `json` begins with, which must be as we write JSON: nothing in it is checked. `None` if it
/// does not end.
pub(super) fn value_len(json: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    loop {
        match json.get(at)? {
            b'"' => {
                at = behind_string(json, at)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            // Numbers and words; what separates values is met inside of containers only.
            _ if depth == 0 => return Some(scalar_len(json)),
            _ => at += 1,
        }
    }
}

/// Behind the closing quote of the string that begins at `at`.
fn behind_string(json: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += plain_len(json.get(at..)?);
        match json.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn scalar_len(json: &[u8]) -> usize {
    json.iter().position(|b| matches!(b, b',' | b'}' | b']')).unwrap_or(json.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        let values = [
            r#"{}"#,
            r#"[]"#,
            r#""""#,
            r#""a\"]}\\""#,
            "true",
            "-1.5e3",
            r#"{"a":[1,{"b":"}]\""},[]],"c":null}"#,
            r#"["\u00e9é",""]"#,
        ];
        for value in values {
            for behind in ["", ",1", "}", "]"] {
                let text = format!("{value}{behind}");
                assert_eq!(value_len(text.as_bytes()), Some(value.len()), "{text}");
            }
        }
        for value in values.iter().filter(|v| v.starts_with(['{', '[', '"'])) {
            for end in 0..value.len() {
                assert_eq!(value_len(&value.as_bytes()[..end]), None, "{value} to {end}");
            }
        }
        assert_eq!(value_len(b"}"), None);
    }
}
