//! Kubernetes' dialect of JSONPath, as printer columns, selectable fields and scale paths of custom resources are
//! written in: `.status.conditions[?(@.type=="Ready")].status`. Not RFC 9535.
//!
//! A path is a template of one action, `{path}`; [`JsonPath::parse`] adds the braces.

mod eval;
mod parse;
mod simple;
mod unquote;

pub use simple::{SimplePath, validate_simple_path};

use kubelith_meta::{Str, Time, Value, text};
use std::fmt;

/// A parsed template: texts and `{actions}`.
#[derive(Debug, Clone)]
pub struct JsonPath {
    nodes: Vec<Node>,
    /// The fields of a path that is nothing but fields, which is nearly every one.
    fields: Option<Vec<Str>>,
}

/// Why a path could not be parsed or followed, in the reference's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPathError(String);

impl fmt::Display for JsonPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JsonPathError {}

/// What happens to a field that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKeys {
    /// It yields nothing.
    Allowed,
    Error,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// An action: what each node yields is what the next one starts from.
    List(Vec<Node>),
    /// A text, number or boolean.
    Constant(Value),
    Field(Str),
    Wildcard,
    /// `..`
    Recursive,
    Slice {
        start: Option<i64>,
        end: End,
        step: Option<i64>,
    },
    Union(Vec<Vec<Node>>),
    Filter {
        left: Vec<Node>,
        /// `None` asks whether `left` yields anything.
        comparison: Option<(Str, Vec<Node>)>,
    },
    /// `range`, `end`, or a word that means nothing.
    Identifier(Str),
}

/// Where a slice ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// With the list: `[1:]`.
    Open,
    /// Before an index: `[1:3]`.
    Before(i64),
    /// After the one element that `[3]` means; for `[-1]` that is the end of the list.
    AfterStart(i64),
}

impl JsonPath {
    /// Reads a path without braces.
    pub fn parse(path: &str) -> Result<JsonPath, JsonPathError> {
        JsonPath::parse_template(&format!("{{{path}}}"))
    }

    /// Reads a template: `{.metadata.name}: {.status.phase}`.
    pub fn parse_template(template: &str) -> Result<JsonPath, JsonPathError> {
        let nodes = parse::template(template)?;
        let fields = match nodes.as_slice() {
            [Node::List(nodes)] => {
                nodes.iter().map(|node| if let Node::Field(name) = node { Some(name.clone()) } else { None }).collect()
            }
            _ => None,
        };
        Ok(JsonPath { nodes, fields })
    }

    /// What the first action leads to. Missing fields and errors lead nowhere, as in a column.
    pub fn find<'a>(&'a self, object: &'a Value) -> Vec<&'a Value> {
        if let Some(fields) = &self.fields {
            return fields.iter().try_fold(object, |v, name| v.get(name)).into_iter().collect();
        }
        let results = self.results(object, MissingKeys::Allowed).unwrap_or_default();
        results.into_iter().next().unwrap_or_default()
    }

    /// The first of what the first action leads to.
    pub fn find_first<'a>(&'a self, object: &'a Value) -> Option<&'a Value> {
        if let Some(fields) = &self.fields {
            return fields.iter().try_fold(object, |v, name| v.get(name));
        }
        self.find(object).into_iter().next()
    }

    /// What each text and action of the template yields; `range` repeats those up to its `end`.
    pub fn results<'a>(
        &'a self,
        object: &'a Value,
        missing: MissingKeys,
    ) -> Result<Vec<Vec<&'a Value>>, JsonPathError> {
        eval::results(&self.nodes, object, missing)
    }

    /// The template filled in: results of an action are separated by spaces.
    pub fn render(&self, object: &Value, missing: MissingKeys) -> Result<String, JsonPathError> {
        let mut out = String::new();
        for results in self.results(object, missing)? {
            for (i, value) in results.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(&printed(value, "null"));
            }
        }
        Ok(out)
    }
}

fn printed(value: &Value, null: &str) -> String {
    match value {
        Value::Null => null.to_owned(),
        Value::String(s) => s.to_string(),
        Value::Float(f) => text::float_v(*f),
        other => text::json(other),
    }
}

/// A value as the column of a custom resource shows it; null where its type does not fit.
pub fn cell(column_type: &str, value: &Value, now: Time) -> Value {
    match (column_type, value) {
        ("string", value) => printed(value, "<no value>").into(),
        ("integer", Value::Int(_)) | ("boolean", Value::Bool(_)) | ("number", Value::Float(_)) => value.clone(),
        ("integer", Value::Float(f)) => Value::Int(*f as i64),
        ("number", Value::Int(i)) => Value::Float(*i as f64),
        ("date", Value::String(s)) => date_cell(s, now),
        _ => Value::Null,
    }
}

fn date_cell(time: &str, now: Time) -> Value {
    if time.is_empty() || time == "null" {
        return "<unknown>".into();
    }
    match Time::parse(time) {
        Ok(time) if time.is_zero() => "<unknown>".into(),
        Ok(time) => time.age(now).into(),
        Err(_) => "<invalid>".into(),
    }
}

#[cfg(test)]
mod tests;
