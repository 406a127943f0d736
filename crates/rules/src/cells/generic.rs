//! Cells of any kind.

use crate::cells::{Cells, Row, joined, strings};
use kubelith_meta::{LabelSelector, Map, Value};

pub const CELLS: Cells = &[
    ("age", |row| row.age(row.first()).map(Value::String)),
    ("count", count),
    ("flag", flag),
    ("fraction", fraction),
    ("join", |row| Some(joined(strings(row.first()?.as_array()?), ",").into())),
    ("labels", labels),
    ("nonempty", |row| row.first().filter(|v| !v.is_empty()).cloned()),
    ("selector", selector),
    ("text", text),
];

/// How many elements all arguments have.
fn count(row: &Row<'_>) -> Option<Value> {
    let length = |v: &&Value| match v {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    Some(Value::Int(row.arguments.iter().flatten().map(length).sum::<usize>() as i64))
}

fn flag(row: &Row<'_>) -> Option<Value> {
    Some(if row.first()?.as_bool()? { "True" } else { "False" }.into())
}

/// `1/3`, where what is absent is 0.
fn fraction(row: &Row<'_>) -> Option<Value> {
    let number = |i: usize| row.arguments.get(i).copied().flatten().and_then(Value::as_i64).unwrap_or(0);
    Some(format!("{}/{}", number(0), number(1)).into())
}

/// `a=1,b=2`.
fn labels(row: &Row<'_>) -> Option<Value> {
    let labels = row.first().and_then(Value::as_object).filter(|m| !m.is_empty());
    Some(labels.map_or_else(|| "<none>".to_owned(), format_labels).into())
}

fn format_labels(labels: &Map) -> String {
    let mut text = String::new();
    for (key, value) in labels.iter() {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(key);
        text.push('=');
        text.push_str(value.as_str().unwrap_or(""));
    }
    text
}

/// A LabelSelector in the syntax of queries.
fn selector(row: &Row<'_>) -> Option<Value> {
    let text = match LabelSelector::from_object(row.first()) {
        Ok(selector) => selector.to_string(),
        Err(_) => "<error>".to_owned(),
    };
    Some(if text.is_empty() { "<none>".into() } else { text.into() })
}

/// A number or a text as text.
fn text(row: &Row<'_>) -> Option<Value> {
    match row.first()? {
        Value::Int(number) => Some(number.to_string().into()),
        other => Some(other.clone()),
    }
}
