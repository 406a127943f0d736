//! Simple paths, which name fields and nothing else: `.spec.replicas`. Scale subresources use them to write, too.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::{Str, Value};
use std::fmt;

/// The names of the fields from the root down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimplePath(Vec<Str>);

impl SimplePath {
    /// Takes the path apart at its dots. There is no escaping: every path means something.
    pub fn new(path: &str) -> SimplePath {
        SimplePath(path.strip_prefix('.').unwrap_or(path).split('.').map(Str::from).collect())
    }

    pub fn fields(&self) -> &[Str] {
        &self.0
    }

    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |v, name| v.get(name))
    }

    /// Sets the field, making objects on the way.
    pub fn set(&self, object: &mut Value, value: impl Into<Value>) {
        let path: Vec<&str> = self.0.iter().map(Str::as_str).collect();
        object.set_at(&path, value.into());
    }
}

/// With a dot in front of each field.
impl fmt::Display for SimplePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|name| write!(f, ".{name}"))
    }
}

/// What is wrong with a path that a CustomResourceDefinition gives at `path`.
pub fn validate_simple_path(text: &str, path: &Path<'_>) -> ErrorList {
    if text.is_empty() {
        return Error::invalid(path, text, "must not be empty").into();
    }
    if !text.starts_with('.') {
        return Error::invalid(path, text, "must be a simple json path starting with .").into();
    }
    ErrorList::new()
}
