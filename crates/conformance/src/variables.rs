//! The `${name}` variables of one transcript run: the namespace made for it and what earlier answers gave.

use serde_json::Value;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Variables {
    values: HashMap<String, Value>,
}

impl Variables {
    pub fn new(namespace: &str) -> Variables {
        Variables { values: HashMap::from([("ns".to_owned(), Value::from(namespace))]) }
    }

    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    pub fn namespace(&self) -> Option<&str> {
        self.values.get("ns").and_then(Value::as_str)
    }

    /// Replaces every known `${name}`; an unknown one stays as it is, since some requests send such text on purpose.
    pub fn substitute(&self, text: &str) -> String {
        self.replace(text, |plain| plain)
    }

    /// The same inside JSON text: a variable stands within a string there, so its value is escaped as one.
    pub fn substitute_json(&self, json: &str) -> String {
        self.replace(json, |plain| {
            let quoted = Value::from(plain).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }

    fn replace(&self, text: &str, encode: impl Fn(String) -> String) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            out.push_str(before);
            let name_len = from[2..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(from.len() - 2);
            let closed = name_len > 0 && from[2 + name_len..].starts_with('}');
            match self.values.get(&from[2..2 + name_len]).filter(|_| closed) {
                Some(value) => {
                    out.push_str(&encode(plain(value)));
                    rest = &from[2 + name_len + 1..];
                }
                None => {
                    out.push_str("${");
                    rest = &from[2..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitutes() {
        let mut variables = Variables::new("tr-1");
        variables.set("n", Value::from(5));
        variables.set("q", Value::from("a\"b"));
        for (text, want) in [
            ("/ns/${ns}/x", "/ns/tr-1/x"),
            ("${ns}${n}", "tr-15"),
            ("${missing} $ns ${", "${missing} $ns ${"),
            ("${${ns}}", "${tr-1}"),
            ("${q}", "a\"b"),
        ] {
            assert_eq!(variables.substitute(text), want);
        }
        assert_eq!(variables.substitute_json(r#"{"a": "${q}"}"#), r#"{"a": "a\"b"}"#);
    }
}
