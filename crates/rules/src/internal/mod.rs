//! Objects as messages show them: by the names of Go, with every field, as `encoding/json` prints a type without tags.
//! The types are a table (`forms.txt`), read when the first such message is made.

mod diff;
mod forms;

use crate::common::{IMMUTABLE, NULL, quantity};
use forms::{Field, Form, Notation};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::{Map, Value, text};

/// `value`, which is of the type `form`, as messages show it.
pub fn shown(form: &str, value: Option<&Value>) -> BadValue {
    BadValue::text(json(form, value))
}

/// On one line.
pub fn json(form: &str, value: Option<&Value>) -> String {
    let mut out = String::new();
    tree(&Notation::of(form), value, &NULL).write(&mut out, None);
    out
}

/// How two values of the type `form` differ: a unified diff of their indented forms.
pub fn difference(form: &str, old: &Value, new: &Value) -> String {
    let notation = Notation::of(form);
    let [old, new] = [old, new].map(|value| {
        let mut out = String::new();
        tree(&notation, Some(value), &NULL).write(&mut out, Some(0));
        out
    });
    diff::unified(&old, &new)
}

/// Whether two values of the type `form` mean the same: quantities are compared by their amount, and an empty list or map
/// is as good as none.
pub fn same(form: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    // Most of what must not change is as it was, to the letter.
    a == b || is_same(&Notation::of(form), a, b, (&NULL, &NULL))
}

/// Refuses a change of a value of the type `form`.
pub fn immutable(form: &str, new: Option<&Value>, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    if !same(form, new, old) {
        errors.push(Error::invalid(path, shown(form, new), IMMUTABLE));
    }
}

fn is_same(notation: &Notation, a: Option<&Value>, b: Option<&Value>, outer: (&Value, &Value)) -> bool {
    let [a, b] = [a, b].map(|v| v.filter(|v| !v.is_null()));
    match notation {
        Notation::Text | Notation::Number | Notation::Flag => {
            a == b || (a.is_none_or(Value::is_empty) && b.is_none_or(Value::is_empty))
        }
        Notation::Quantity => match (a.map(quantity), b.map(quantity)) {
            (Some(Some(a)), Some(Some(b))) => a == b,
            (Some(Some(only)), None) | (None, Some(Some(only))) => only.signum() == 0,
            _ => a == b,
        },
        Notation::Nullable => a == b,
        Notation::Pointer(to) => match (a, b) {
            (Some(_), Some(_)) => is_same(to, a, b, outer),
            (a, b) => a.is_none() && b.is_none(),
        },
        Notation::List(of) => {
            let [a, b] = [a, b].map(|v| v.and_then(Value::as_array).unwrap_or_default());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(of, Some(a), Some(b), outer))
        }
        Notation::Map(of) => {
            let empty = Map::new();
            let [a, b] = [a, b].map(|v| v.and_then(Value::as_object).unwrap_or(&empty));
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|o| is_same(of, Some(v), Some(o), outer)))
        }
        Notation::Struct(name) => {
            let (a, b) = (a.unwrap_or(&NULL), b.unwrap_or(&NULL));
            forms::get(name).fields.iter().all(|field| match field {
                Field::Own { wire, notation, .. } => is_same(notation, a.get(wire), b.get(wire), (a, b)),
                Field::Outer { wire, notation, .. } => {
                    is_same(notation, outer.0.get(wire), outer.1.get(wire), (&NULL, &NULL))
                }
                Field::UnlessEmpty { name, notation } => is_same(notation, a.get(name), b.get(name), (a, b)),
                Field::Embedded { wire, name } => {
                    is_same(&Notation::Struct(name.clone()), a.get(wire), b.get(wire), (a, b))
                }
            })
        }
    }
}

/// What is printed, before it is laid out.
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// A value by its type; `outer` is the object around the one that it is a member of.
fn tree(notation: &Notation, value: Option<&Value>, outer: &Value) -> Tree {
    let value = value.filter(|v| !v.is_null());
    let leaf = |zero: &str| Tree::Leaf(value.map_or_else(|| zero.to_owned(), text::json));
    match notation {
        Notation::Text => leaf("\"\""),
        Notation::Number => leaf("0"),
        Notation::Flag => leaf("false"),
        Notation::Quantity => leaf("\"0\""),
        Notation::Nullable => leaf("null"),
        Notation::Pointer(to) => match value {
            Some(_) => tree(to, value, outer),
            None => Tree::Leaf("null".into()),
        },
        Notation::List(of) => match value.and_then(Value::as_array) {
            Some(items) => Tree::List(items.iter().map(|item| tree(of, Some(item), outer)).collect()),
            None => Tree::Leaf("null".into()),
        },
        Notation::Map(of) => match value.and_then(Value::as_object) {
            Some(map) => Tree::Object(map.iter().map(|(k, v)| (k.to_owned(), tree(of, Some(v), outer))).collect()),
            None => Tree::Leaf("null".into()),
        },
        Notation::Struct(name) => Tree::Object(members(forms::get(name), value.unwrap_or(&NULL), outer)),
    }
}

fn members(form: &Form, object: &Value, outer: &Value) -> Vec<(String, Tree)> {
    let mut all = Vec::with_capacity(form.fields.len());
    for field in &form.fields {
        match field {
            Field::Own { name, wire, notation } => {
                all.push((name.clone(), tree(notation, object.get(wire), object)));
            }
            Field::Outer { name, wire, notation } => {
                all.push((name.clone(), tree(notation, outer.get(wire), outer)));
            }
            Field::UnlessEmpty { name, notation } => {
                // A pointer is there or not; anything else is left out at its zero value.
                let value = object.get(name).filter(|v| !v.is_null());
                let is_shown = value.is_some_and(|v| matches!(notation, Notation::Pointer(_)) || !v.is_empty());
                if is_shown {
                    all.push((name.clone(), tree(notation, value, object)));
                }
            }
            Field::Embedded { wire, name } => {
                all.extend(members(forms::get(name), object.get(wire).unwrap_or(&NULL), object));
            }
        }
    }
    all
}

impl Tree {
    /// On one line, or below each other from this depth on, as `json.MarshalIndent` does with one space.
    fn write(&self, out: &mut String, depth: Option<usize>) {
        match self {
            Tree::Leaf(text) => out.push_str(text),
            Tree::List(items) => {
                write_all(out, depth, ['[', ']'], items, |out, depth, item| item.write(out, depth));
            }
            Tree::Object(entries) => write_all(out, depth, ['{', '}'], entries, |out, depth, (key, value)| {
                text::push_json_string(out, key);
                out.push_str(if depth.is_some() { ": " } else { ":" });
                value.write(out, depth);
            }),
        }
    }
}

fn write_all<T>(
    out: &mut String,
    depth: Option<usize>,
    [open, close]: [char; 2],
    items: &[T],
    write: impl Fn(&mut String, Option<usize>, &T),
) {
    let new_line = |out: &mut String, depth: Option<usize>| {
        if let Some(depth) = depth {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        }
    };
    let inner = depth.map(|depth| depth + 1);
    out.push(open);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        new_line(out, inner);
        write(out, inner, item);
    }
    if !items.is_empty() {
        new_line(out, depth);
    }
    out.push(close);
}

#[cfg(test)]
mod tests;
