//! Paths into a JSON document as transcripts write them: `a.b[0].c`, `[*]` for every element, `\.` for a dot in a key.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Key(String),
    Index(usize),
    Every,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Part>);

impl Path {
    pub fn parse(text: &str) -> Path {
        let mut parts = Vec::new();
        let mut key = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.peek() == Some(&'.') => {
                    chars.next();
                    key.push('.');
                }
                '.' => flush(&mut key, &mut parts),
                '[' => {
                    flush(&mut key, &mut parts);
                    let inner: String = chars.by_ref().take_while(|c| *c != ']').collect();
                    parts.push(match inner.parse() {
                        Ok(index) => Part::Index(index),
                        Err(_) if inner == "*" => Part::Every,
                        Err(_) => Part::Key(inner),
                    });
                }
                c => key.push(c),
            }
        }
        flush(&mut key, &mut parts);
        Path(parts)
    }

    /// The value there, or null. `[*]` gives the list of what the rest of the path finds in each element.
    pub fn lookup(&self, value: &Value) -> Value {
        lookup(value, &self.0)
    }

    /// Takes what is there out of the document; an element of a list is only blanked, so that the others keep their places.
    pub fn drop_from(&self, value: &mut Value) {
        drop_from(value, &self.0);
    }
}

fn flush(key: &mut String, parts: &mut Vec<Part>) {
    if !key.is_empty() {
        parts.push(Part::Key(std::mem::take(key)));
    }
}

fn lookup(value: &Value, parts: &[Part]) -> Value {
    let Some((part, rest)) = parts.split_first() else { return value.clone() };
    let next = match (part, value) {
        (Part::Every, Value::Array(items)) => return items.iter().map(|item| lookup(item, rest)).collect(),
        (Part::Key(key), Value::Object(map)) => map.get(key),
        (Part::Index(index), Value::Array(items)) => items.get(*index),
        _ => None,
    };
    next.map_or(Value::Null, |next| lookup(next, rest))
}

fn drop_from(value: &mut Value, parts: &[Part]) {
    let Some((part, rest)) = parts.split_first() else { return };
    match (part, value) {
        (Part::Every, Value::Array(items)) => items.iter_mut().for_each(|item| drop_from(item, rest)),
        (Part::Key(key), Value::Object(map)) if rest.is_empty() => {
            map.remove(key);
        }
        (Part::Key(key), Value::Object(map)) => {
            if let Some(next) = map.get_mut(key) {
                drop_from(next, rest);
            }
        }
        (Part::Index(index), Value::Array(items)) => {
            if let Some(next) = items.get_mut(*index) {
                if rest.is_empty() {
                    *next = Value::from("<ignored>");
                } else {
                    drop_from(next, rest);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn looks_up() {
        let doc = json!({"a": [{"b": 1}, {"b": 2}, {}], "x.y": {"z": true}});
        for (path, want) in [
            ("a[1].b", json!(2)),
            ("a[*].b", json!([1, 2, null])),
            ("a[9].b", json!(null)),
            (r"x\.y.z", json!(true)),
            ("a.b", json!(null)),
            ("", doc.clone()),
        ] {
            assert_eq!(Path::parse(path).lookup(&doc), want, "{path}");
        }
        assert_eq!(Path::parse("[1][0]").lookup(&json!([1, [2]])), json!(2));
    }

    #[test]
    fn drops() {
        for (path, want) in [
            ("a[0]", json!({"a": ["<ignored>", {"b": 2, "c": 3}], "d": 4})),
            ("a[*].b", json!({"a": [{"c": 1}, {"c": 3}], "d": 4})),
            ("a[*]", json!({"a": [{"b": 1, "c": 1}, {"b": 2, "c": 3}], "d": 4})),
            ("d", json!({"a": [{"b": 1, "c": 1}, {"b": 2, "c": 3}]})),
            ("d.e[0].f", json!({"a": [{"b": 1, "c": 1}, {"b": 2, "c": 3}], "d": 4})),
        ] {
            let mut doc = json!({"a": [{"b": 1, "c": 1}, {"b": 2, "c": 3}], "d": 4});
            Path::parse(path).drop_from(&mut doc);
            assert_eq!(doc, want, "{path}");
        }
    }
}
