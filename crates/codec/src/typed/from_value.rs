//! Values taken as a built-in type, without a detour over text: what strategic merge and apply made is turned into an
//! object like that. The rules are a little wider than those for JSON (1.0 is an integer) and the errors are worded
//! differently: it is another converter in the reference.

use super::special::{self, Special};
use super::{decode, go_names};
use crate::json::{self, Decoded, StrictError, StrictErrors, Strictness};
use kubelith_meta::{Map, Value};
use kubelith_schema::{Schema, Shape, StructType, TypeTable, TypedSchema, Unknown};
use std::sync::Arc;

/// Recursion ends here; what is deeper is decoded from text, which needs no stack.
const MAX_RECURSION: usize = 128;

/// Takes `value` as a value of `schema`. Unknown fields go and are reported if that is wished for.
pub fn from_value(value: Value, schema: &TypedSchema, strictness: Strictness) -> Result<Decoded, String> {
    walk(value, schema, strictness, Numbers::Converted)
}

/// The same, but for numbers that text would not be decoded to: they are errors, whose words are of no use.
pub fn from_value_exactly(value: Value, schema: &TypedSchema, strictness: Strictness) -> Result<Decoded, String> {
    walk(value, schema, strictness, Numbers::Exact)
}

/// Whether integers are cut to the size of their type, and whole numbers written as floats become integers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Converted,
    Exact,
}

fn walk(mut value: Value, schema: &TypedSchema, strictness: Strictness, numbers: Numbers) -> Result<Decoded, String> {
    let strict = StrictErrors::default();
    let mut walk = Walk { table: &schema.table, strictness, numbers, strict, path: Vec::new() };
    if walk.value(&schema.root, None, &mut value, 0)? == Kept::No {
        value = Value::Null;
    }
    Ok(Decoded { value, strict: walk.strict.into_vec() })
}

struct Walk<'s> {
    table: &'s Arc<TypeTable>,
    strictness: Strictness,
    numbers: Numbers,
    strict: StrictErrors,
    path: Vec<Step>,
}

enum Step {
    Key(kubelith_meta::Str),
    Index(usize),
}

/// Whether there is a value: null, and the zero time, are none.
#[derive(PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// What Go calls the type of the value that an error is about.
type GoType<'t> = Option<&'t str>;

impl Walk<'_> {
    /// `go_type` is the type's name where the schema does not tell it.
    fn value(&mut self, schema: &Schema, go_type: GoType<'_>, value: &mut Value, depth: usize) -> Result<Kept, String> {
        match value {
            Value::Null => return Ok(Kept::No),
            // As it is stored, and so decoded before.
            Value::Object(map) if map.is_sealed() => return Ok(Kept::Yes),
            _ => {}
        }
        if depth > MAX_RECURSION {
            return self.read_text(schema, value);
        }
        match &schema.shape {
            Shape::Any | Shape::RawExtension | Shape::Json => {}
            Shape::FieldsV1 => {
                if let Value::Object(_) = value {
                    *value = Value::Raw(json::to_string(value).into());
                }
            }
            Shape::String | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Float => {
                self.scalar(schema, go_type, value)?;
            }
            Shape::Bytes => bytes(value)?,
            Shape::Time => return self.special(schema, Special::Time, value),
            Shape::MicroTime => return self.special(schema, Special::MicroTime, value),
            Shape::Duration => return self.special(schema, Special::Duration, value),
            Shape::Quantity => return self.special(schema, Special::Quantity, value),
            Shape::IntOrString => match value {
                Value::String(_) => {}
                Value::Int(i) if i32::try_from(*i).is_ok() => {}
                _ => return self.read_text(schema, value),
            },
            Shape::JsonSchemaOrBool(_) | Shape::JsonSchemaOrArray(_) | Shape::JsonSchemaOrStrings(_) => {
                return self.read_text(schema, value);
            }
            Shape::Named(id) => self.object(self.table.clone().get(*id), value, depth)?,
            Shape::Struct(ty) => self.object(ty, value, depth)?,
            Shape::Map(element) => {
                let kind = go_kind(value);
                let Value::Object(map) = value else { return Err(format!("cannot restore map from {kind}")) };
                self.members(element, go_type.and_then(go_names::element), map, depth)?;
            }
            Shape::List(element) => {
                let kind = go_kind(value);
                let Value::Array(items) = value else { return Err(format!("cannot restore slice from {kind}")) };
                self.items(element, go_type.and_then(go_names::element), items, depth)?;
            }
        }
        Ok(Kept::Yes)
    }

    fn object(&mut self, ty: &StructType, value: &mut Value, depth: usize) -> Result<(), String> {
        let kind = go_kind(value);
        let Value::Object(map) = value else { return Err(format!("cannot restore struct from: {kind}")) };
        let mut unknown = Vec::new();
        let mut problem = None;
        // Keys and fields are both sorted: one pass.
        let mut fields = ty.fields.in_order(map.len());
        map.retain_keys(|key, member| {
            if problem.is_some() {
                return true;
            }
            let Some(field) = fields.find(key.head(), key).map(|i| &ty.fields[i]) else {
                if ty.unknown == Unknown::Preserve {
                    return true;
                }
                if self.strictness == Strictness::Report {
                    unknown.push(key.as_str().to_owned());
                }
                return false;
            };
            self.path.push(Step::Key(field.name.clone()));
            let done = self.value(&field.schema, None, member, depth + 1).or_else(|problem| {
                // Only errors need Go's own name of the type, which takes a search.
                match go_names::field(ty, &field.name).type_name {
                    Some(name) => self.value(&field.schema, Some(name), member, depth + 1),
                    None => Err(problem),
                }
            });
            self.path.pop();
            match done {
                Ok(kept) => kept == Kept::Yes,
                Err(e) => {
                    problem = Some(e);
                    true
                }
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        for key in unknown {
            let path = self.path_to(&key);
            self.strict.add(StrictError::UnknownField(path));
        }
        Ok(())
    }

    fn members(&mut self, element: &Schema, go_type: GoType<'_>, map: &mut Map, depth: usize) -> Result<(), String> {
        for (key, member) in map.iter_mut() {
            self.path.push(Step::Key(key.into()));
            let kept = self.value(element, go_type, member, depth + 1);
            self.path.pop();
            if kept? == Kept::No {
                *member = special::zero(self.table, super::decoder::Place::Schema(element));
            }
        }
        Ok(())
    }

    fn items(
        &mut self,
        element: &Schema,
        go_type: GoType<'_>,
        items: &mut [Value],
        depth: usize,
    ) -> Result<(), String> {
        for (i, item) in items.iter_mut().enumerate() {
            self.path.push(Step::Index(i));
            let kept = self.value(element, go_type, item, depth + 1);
            self.path.pop();
            if kept? == Kept::No {
                *item = special::zero(self.table, super::decoder::Place::Schema(element));
            }
        }
        Ok(())
    }

    fn scalar(&self, schema: &Schema, go_type: GoType<'_>, value: &mut Value) -> Result<(), String> {
        let converted = match (&schema.shape, &*value) {
            (Shape::String, Value::String(_)) | (Shape::Bool, Value::Bool(_)) | (Shape::Int64, Value::Int(_)) => {
                return Ok(());
            }
            (Shape::Int32, Value::Int(i)) if i32::try_from(*i).is_ok() => return Ok(()),
            (Shape::Int32 | Shape::Int64, number) if self.numbers == Numbers::Exact => {
                return Err(format!("{number:?} is no such integer"));
            }
            (Shape::Int32, Value::Int(i)) => Value::Int(i64::from(*i as i32)),
            (Shape::Float, Value::Float(f)) => json::stored_form(*f),
            (Shape::Float, Value::Int(i)) => json::stored_form(*i as f64),
            (Shape::Int32, Value::Float(f)) if f.fract() == 0.0 => Value::Int(i64::from(go_int(*f) as i32)),
            (Shape::Int64, Value::Float(f)) if f.fract() == 0.0 => Value::Int(go_int(*f)),
            (shape, found) => {
                let expected = match go_type {
                    Some(name) => name.to_owned(),
                    None => go_names::of_schema(self.table, schema),
                };
                // Go converts integers to strings, and floats to integers; this converter does not.
                let convertible = matches!(
                    (shape, found),
                    (Shape::String, Value::Int(_)) | (Shape::Int32 | Shape::Int64, Value::Float(_))
                );
                return Err(match convertible {
                    true => format!("cannot convert {} to {expected}", go_kind(found)),
                    false => format!("unrecognized type: {}", go_names::of_schema(self.table, schema)),
                });
            }
        };
        *value = converted;
        Ok(())
    }

    /// A value with a text form of its own.
    fn special(&mut self, schema: &Schema, special: Special, value: &mut Value) -> Result<Kept, String> {
        let Value::String(text) = &*value else { return self.read_text(schema, value) };
        match special.read_text(text) {
            Ok(Some(read)) => {
                *value = read;
                Ok(Kept::Yes)
            }
            Ok(None) => Ok(Kept::No),
            Err(problem) => Err(problem),
        }
    }

    /// What reads itself from JSON gets JSON.
    fn read_text(&mut self, schema: &Schema, value: &mut Value) -> Result<Kept, String> {
        let text = json::to_vec(value);
        let schema = TypedSchema { table: self.table.clone(), root: Arc::new(schema.clone()) };
        let decoded = decode(&text, &schema, Strictness::Lenient).map_err(|e| e.to_string())?;
        *value = decoded.value;
        Ok(if value.is_null() { Kept::No } else { Kept::Yes })
    }

    fn path_to(&self, key: &str) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Index(i) => path.push_str(&format!("[{i}]")),
            }
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        path
    }
}

/// Base64 in its canonical form; also a list of numbers.
fn bytes(value: &mut Value) -> Result<(), String> {
    *value = match &*value {
        Value::String(text) => special::bytes(text).map_err(|e| format!("error decoding from json: {e}"))?,
        Value::Array(items) => {
            let bytes: Vec<u8> = items.iter().map(|i| i.as_i64().unwrap_or(0) as u8).collect();
            crate::base64::encode(&bytes).into()
        }
        other => return Err(format!("cannot restore slice from {}", go_kind(other))),
    };
    Ok(())
}

/// A double as an integer, as the processor converts it that the reference runs on: all that is out of range is the
/// lowest integer.
fn go_int(f: f64) -> i64 {
    const RANGE: std::ops::Range<f64> = i64::MIN as f64..-(i64::MIN as f64);
    if RANGE.contains(&f) { f as i64 } else { i64::MIN }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) | Value::Raw(_) => "map",
    }
}
