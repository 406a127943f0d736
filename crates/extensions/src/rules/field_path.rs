//! `fieldPath` of a rule: a path of members, `.spec.x['a.b']`, that the schema must know.

use kubelith_schema::structural::Structural;

/// Whether keys may stand in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    Allowed,
    Refused,
}

/// The path as errors show it and the schema that it leads to, or why it is none.
pub fn resolve<'a>(path: &str, schema: &'a Structural, brackets: Brackets) -> Result<(String, &'a Structural), String> {
    let mut schema = schema;
    let mut shown = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (token, after) = token(rest);
        rest = after;
        let (name, step) = match token {
            "." => {
                let (name, after) = next(rest)?;
                rest = after;
                (name.to_owned(), step(schema)?)
            }
            "[" if brackets == Brackets::Refused => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let (quoted, after) = next(rest)?;
                let inner = quoted.strip_prefix('\'').and_then(|q| q.strip_suffix('\''));
                let Some(inner) = inner.filter(|_| quoted.len() >= 2) else {
                    return Err(format!("expected single quoted string but got {quoted}"));
                };
                let name = unescape(inner).map_err(|why| format!("invalid string literal: {why}"))?;
                let step = step(schema)?;
                let (close, after) = next(after)?;
                if close != "]" {
                    return Err(format!("expected ] but got {close}"));
                }
                rest = after;
                (name, step)
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        schema = match step {
            Step::Property => {
                if !shown.is_empty() {
                    shown.push('.');
                }
                shown.push_str(&name);
                schema.property(&name).ok_or("does not refer to a valid field")?
            }
            Step::Key(values) => {
                shown.push_str(&format!("[{name}]"));
                values
            }
        };
    }
    Ok((shown, schema))
}

enum Step<'a> {
    Property,
    /// A key of a map, with the schema of its values.
    Key(&'a Structural),
}

fn step(schema: &Structural) -> Result<Step<'_>, String> {
    if !schema.properties.is_empty() {
        return Ok(Step::Property);
    }
    schema.additional_schema().map(Step::Key).ok_or_else(|| "does not refer to a valid field".to_owned())
}

fn next(rest: &str) -> Result<(&str, &str), String> {
    if rest.is_empty() { Err("unexpected end of JSON path".to_owned()) } else { Ok(token(rest)) }
}

/// A delimiter, a quoted string, or what stands before the next delimiter.
fn token(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let end = match bytes[0] {
        b'.' | b'[' | b']' => 1,
        b'\'' => (1..bytes.len()).find(|&i| bytes[i] == b'\'' && bytes[i - 1] != b'\\').map_or(bytes.len(), |i| i + 1),
        _ => bytes.iter().position(|b| matches!(b, b'.' | b'[' | b']')).unwrap_or(bytes.len()),
    };
    text.split_at(end)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') => '\\',
            Some(other) => return Err(format!("invalid escape char \\{other}")),
            // A backslash at the end escapes nothing.
            None => '\\',
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn paths_of_rules() {
        let schema = br#"{"type":"object","properties":{"a":{"type":"object","properties":{"b.c":{"type":"string"}}},
            "m":{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"string"}}}}}}"#;
        let schema = Structural::parse(&json::parse(schema).unwrap());
        for (path, wanted) in [
            (".a", Ok("a")),
            (".a['b.c']", Ok("a.b.c")),
            (".m['k\\'s'].x", Ok("m[k's].x")),
            (".m.k.x", Ok("m[k].x")),
            (".b", Err("does not refer to a valid field")),
            (".a['b.c'].d", Err("does not refer to a valid field")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            (".m[k]", Err("expected single quoted string but got k")),
            (".m['k", Err("expected single quoted string but got 'k")),
            (".m['k'", Err("unexpected end of JSON path")),
            (".m['k'.x", Err("expected ] but got .")),
            (".m['\\q']", Err("invalid string literal: invalid escape char \\q")),
        ] {
            let found = resolve(path, &schema, Brackets::Allowed).map(|(shown, _)| shown);
            assert_eq!(found.as_deref().map_err(String::as_str), wanted, "{path}");
        }
    }
}
