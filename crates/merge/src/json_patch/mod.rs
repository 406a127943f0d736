//! JSON patch (RFC 6902) as kube-apiserver applies it. Its library is laxer than the RFC, and clients rely on it:
//! `replace` of an absent member adds it, `copy` of an absent member writes null, `add` without a value writes null,
//! negative indices count from the end, and the text before the first slash of a path is ignored.

mod decode;
mod pointer;
#[cfg(test)]
mod tests;

use crate::PatchError;
use kubelith_meta::{Str, Value};
use pointer::{Container, Pointer};

/// More operations of a client are refused with 413.
pub const MAX_OPERATIONS: usize = 10_000;

/// What `copy` operations of one patch may add by default, in bytes of JSON: the reference's 3 MiB for request bodies.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Objects nested deeper are refused. `copy` can double the depth with each operation, and everything that walks a
/// value afterwards recurses. (The reference's decoder stops at 10,000.)
const MAX_DEPTH: usize = 1000;

/// Whether the body is checked as fieldValidation=Warn and Strict do, or read as leniently as with Ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checking {
    Ignore,
    Checked,
}

/// A decoded patch.
#[derive(Debug, Clone)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// One step. Members are kept as they came: most mistakes count only when the step is reached.
#[derive(Debug, Clone, Default)]
struct Operation {
    op: Option<Str>,
    path: Member,
    from: Member,
    value: Option<Value>,
}

#[derive(Debug, Clone, Default)]
enum Member {
    #[default]
    Missing,
    Text(Str),
    /// Not a string; holds the decoder's complaint.
    Wrong(String),
}

impl JsonPatch {
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Where operations change something, and from where they take it.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        let members = self.operations.iter().flat_map(|o| {
            let from = matches!(o.op.as_deref(), Some("move" | "copy")).then_some(&o.from);
            std::iter::once(&o.path).chain(from)
        });
        members.filter_map(|member| match member {
            Member::Text(pointer) => Some(pointer.as_str()),
            _ => None,
        })
    }

    /// Applies all operations to `doc`; after an error `doc` is of no use.
    pub fn apply(self, doc: &mut Value, max_copied_bytes: usize) -> Result<(), PatchError> {
        // What is moved may be something else where it goes.
        if self.operations.iter().any(|o| matches!(o.op.as_deref(), Some("move" | "copy"))) {
            doc.unseal();
        }
        let mut run = Run { depth: depth(doc), doc, copied: 0, max_copied: max_copied_bytes };
        for operation in self.operations {
            run.step(operation).map_err(PatchError::Unprocessable)?;
        }
        Ok(())
    }
}

/// A patch under way.
struct Run<'d> {
    doc: &'d mut Value,
    /// An upper bound of the document's depth.
    depth: usize,
    copied: usize,
    max_copied: usize,
}

impl Run<'_> {
    fn step(&mut self, operation: Operation) -> Result<(), String> {
        match operation.op.as_deref() {
            Some("add") => self.add(operation),
            Some("remove") => self.remove(operation),
            Some("replace") => self.replace(operation),
            Some("move") => self.move_value(operation),
            Some("test") => self.test(operation),
            Some("copy") => self.copy(operation),
            other => Err(format!("Unexpected kind: {}", other.unwrap_or("unknown"))),
        }
    }

    /// Takes note that a value of at most `value_depth` levels now stands at `pointer`.
    fn deepen(&mut self, pointer: &Pointer<'_>, value_depth: usize) -> Result<(), String> {
        self.depth = self.depth.max(pointer.depth() + value_depth);
        if self.depth > MAX_DEPTH {
            self.depth = depth(self.doc);
        }
        if self.depth > MAX_DEPTH { Err("exceeded max depth".into()) } else { Ok(()) }
    }

    fn add(&mut self, operation: Operation) -> Result<(), String> {
        let Member::Text(path) = operation.path else {
            return Err("add operation failed to decode path: missing value".into());
        };
        let value = operation.value.unwrap_or_default();
        let pointer = Pointer::parse(&path);
        let (parent, key) = pointer
            .find(self.doc)
            .ok_or_else(|| format!("add operation does not apply: doc is missing path: \"{path}\": missing value"))?;
        let levels = depth(&value);
        parent.add(&key, value).map_err(|e| format!("error in add for path: '{path}': {e}"))?;
        self.deepen(&pointer, levels)
    }

    fn remove(&mut self, operation: Operation) -> Result<(), String> {
        let Member::Text(path) = operation.path else {
            return Err("remove operation failed to decode path: missing value".into());
        };
        let pointer = Pointer::parse(&path);
        let (mut parent, key) = pointer.find(self.doc).ok_or_else(|| {
            format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        parent.remove(&key).map(drop).map_err(|e| format!("error in remove for path: '{path}': {e}"))
    }

    fn replace(&mut self, operation: Operation) -> Result<(), String> {
        let path = operation.path.text("replace operation failed to decode path: operation missing path field")?;
        let value = operation.value.unwrap_or_default();
        if path.is_empty() {
            if !matches!(value, Value::Object(_) | Value::Array(_)) {
                return Err("replace operation value must be object or array: %!w(<nil>)".into());
            }
            self.depth = depth(&value);
            *self.doc = value;
            return Ok(());
        }
        let pointer = Pointer::parse(&path);
        let (parent, key) = pointer
            .find(self.doc)
            .ok_or_else(|| format!("replace operation does not apply: doc is missing path: {path}: missing value"))?;
        let levels = depth(&value);
        parent
            .set(&key, value)
            .map_err(|_| format!("replace operation does not apply: doc is missing key: {path}: missing value"))?;
        self.deepen(&pointer, levels)
    }

    fn move_value(&mut self, operation: Operation) -> Result<(), String> {
        let from = operation.from.text("move operation failed to decode from: operation, missing from field")?;
        let source = Pointer::parse(&from);
        let (mut parent, key) = source
            .find(self.doc)
            .ok_or_else(|| format!("move operation does not apply: doc is missing from path: {from}: missing value"))?;
        let value = parent.remove(&key).map_err(|e| format!("error in move for path: '{key}': {e}"))?;
        let path = operation.path.text("move operation failed to decode path: operation missing path field")?;
        let target = Pointer::parse(&path);
        let (parent, key) = target.find(self.doc).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: missing value")
        })?;
        parent.add(&key, value).map_err(|e| format!("error in move for path: '{path}': {e}"))?;
        // Not measured: a patch of many moves would walk the document as often.
        self.deepen(&target, self.depth.saturating_sub(source.depth()))
    }

    fn test(&mut self, operation: Operation) -> Result<(), String> {
        let path = operation.path.text("test operation failed to decode path: operation missing path field")?;
        let wanted = operation.value.unwrap_or_default();
        let equal = if path.is_empty() {
            *self.doc == wanted
        } else {
            let pointer = Pointer::parse(&path);
            let (parent, key) = pointer
                .find(self.doc)
                .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: missing value"))?;
            let found = parent.get(&key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
            // An absent member equals null.
            found.map_or(wanted.is_null(), |f| *f == wanted)
        };
        if equal { Ok(()) } else { Err(format!("testing value {path} failed: test failed")) }
    }

    fn copy(&mut self, operation: Operation) -> Result<(), String> {
        let from = operation.from.text("copy operation failed to decode from: operation, missing from field")?;
        let source = Pointer::parse(&from);
        let (parent, key) = source
            .find(self.doc)
            .ok_or_else(|| format!("copy operation does not apply: doc is missing from path: {from}: missing value"))?;
        let found = parent.get(&key).map_err(|e| format!("error in copy for from: '{from}': {e}"))?;
        self.copied += found.map_or(0, json_size);
        // A refused copy must not cost memory.
        let over = self.max_copied > 0 && self.copied > self.max_copied;
        let value = if over { Value::Null } else { found.cloned().unwrap_or_default() };
        let Member::Text(path) = operation.path else {
            return Err("copy operation failed to decode path: missing value".into());
        };
        let target = Pointer::parse(&path);
        let (parent, key) = target.find(self.doc).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing destination path: {path}: missing value")
        })?;
        if over {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {}",
                self.copied, self.max_copied
            ));
        }
        let levels = depth(&value);
        parent.add(&key, value).map_err(|e| format!("error while adding value during copy: {e}"))?;
        self.deepen(&target, levels)
    }
}

impl Member {
    /// The text, or `missing` completed as the library does.
    fn text(self, missing: &str) -> Result<Str, String> {
        match self {
            Member::Text(text) => Ok(text),
            Member::Missing => Err(format!("{missing}: missing value")),
            Member::Wrong(complaint) => {
                let prefix = missing.rsplit_once(": ").map_or(missing, |(prefix, _)| prefix);
                Err(format!("{prefix}: {complaint}"))
            }
        }
    }
}

/// Levels of nesting: 0 for a scalar.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(a) => 1 + a.iter().map(depth).max().unwrap_or(0),
        Value::Object(m) => 1 + m.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Bytes of the value as compact JSON, escapes not counted.
fn json_size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(b) => 5 - usize::from(*b),
        Value::Int(i) => itoa::Buffer::new().format(*i).len(),
        Value::Float(f) => ryu::Buffer::new().format(*f).len(),
        Value::String(s) => s.len() + 2,
        Value::Raw(text) => text.len(),
        Value::Array(a) => 1 + a.len().max(1) + a.iter().map(json_size).sum::<usize>(),
        Value::Object(m) => 1 + m.len().max(1) + m.iter().map(|(k, v)| k.len() + 3 + json_size(v)).sum::<usize>(),
    }
}

/// What a pointer leads into.
fn container(value: &mut Value) -> Option<Container<'_>> {
    match value {
        Value::Object(m) => Some(Container::Object(m)),
        Value::Array(a) => Some(Container::Array(a)),
        _ => None,
    }
}
