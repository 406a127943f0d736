//! Removes what the schema does not know.

use super::{Additional, Structural};
use kubelith_meta::{Map, Value};
use std::fmt::Write;

/// What every resource has, whether its schema says so or not.
pub(super) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes an object whose root is a resource of its own.
pub fn prune(schema: &Structural, object: &mut Value) {
    walk(schema, object, &mut Ignore);
}

/// Prunes a value inside of an object.
pub(super) fn prune_part(schema: &Structural, value: &mut Value) {
    Pruner { report: &mut Ignore }.value(Some(schema), schema.embedded, value);
}

/// As `prune`, and answers the paths of what was removed, sorted.
pub fn prune_reporting(schema: &Structural, object: &mut Value) -> Vec<String> {
    let mut track = Track::default();
    walk(schema, object, &mut track);
    track.found.sort();
    track.found
}

fn walk(schema: &Structural, object: &mut Value, report: &mut dyn Report) {
    Pruner { report }.value(Some(schema), true, object);
}

/// Who wants to know of unknown fields.
trait Report {
    fn enter_key(&mut self, _key: &str) -> usize {
        0
    }
    fn enter_index(&mut self, _index: usize) -> usize {
        0
    }
    fn leave(&mut self, _to: usize) {}
    fn unknown(&mut self, _key: &str) {}
}

struct Ignore;

impl Report for Ignore {}

/// Paths as the reference writes them: `spec.a[0].b`.
#[derive(Default)]
struct Track {
    path: String,
    found: Vec<String>,
}

impl Report for Track {
    fn enter_key(&mut self, key: &str) -> usize {
        let len = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        len
    }

    fn enter_index(&mut self, index: usize) -> usize {
        let len = self.path.len();
        let _ = write!(self.path, "[{index}]");
        len
    }

    fn leave(&mut self, to: usize) {
        self.path.truncate(to);
    }

    fn unknown(&mut self, key: &str) {
        // The type and metadata of the object itself are never unknown.
        if self.path.is_empty() && META.contains(&key) {
            return;
        }
        let dot = if self.path.is_empty() { "" } else { "." };
        self.found.push(format!("{}{dot}{key}", self.path));
    }
}

struct Pruner<'a> {
    report: &'a mut dyn Report,
}

impl Pruner<'_> {
    /// `resource`: the value has apiVersion, kind and metadata of its own.
    fn value(&mut self, schema: Option<&Structural>, resource: bool, value: &mut Value) {
        let preserve = schema.is_some_and(|s| s.preserve_unknown);
        match value {
            Value::Object(map) => self.object(schema, resource, preserve, map),
            Value::Array(items) => {
                let item_schema = schema.and_then(|s| s.items.as_deref());
                for (i, item) in items.iter_mut().enumerate() {
                    let at = self.report.enter_index(i);
                    match preserve {
                        true => self.skip(item_schema, item),
                        false => self.member(item_schema, item),
                    }
                    self.report.leave(at);
                }
            }
            _ => {}
        }
    }

    fn member(&mut self, schema: Option<&Structural>, value: &mut Value) {
        if matches!(value, Value::Object(_) | Value::Array(_)) {
            self.value(schema, schema.is_some_and(|s| s.embedded), value);
        }
    }

    /// Inside of what is preserved as a whole, only what has a schema is looked at.
    fn skip(&mut self, schema: Option<&Structural>, value: &mut Value) {
        let Some(schema) = schema else { return };
        match value {
            Value::Object(map) => self.object(Some(schema), schema.embedded, true, map),
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    let at = self.report.enter_index(i);
                    self.skip(schema.items.as_deref(), item);
                    self.report.leave(at);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, schema: Option<&Structural>, resource: bool, preserve: bool, map: &mut Map) {
        map.retain(|key, value| {
            if resource && META.contains(&key) {
                return true;
            }
            let known = schema.and_then(|s| {
                let additional = s.additional.as_deref().map(|a| match a {
                    Additional::Of(schema) => Some(schema),
                    Additional::Allowed(_) => None,
                });
                s.property(key).map(Some).or(additional)
            });
            match known {
                Some(schema) => {
                    let at = self.report.enter_key(key);
                    self.member(schema, value);
                    self.report.leave(at);
                    true
                }
                None if preserve => true,
                None => {
                    self.report.unknown(key);
                    false
                }
            }
        });
    }
}
