//! Nodes to a value: aliases expanded, merge keys applied, keys made strings. Iterative, as nesting is deep if
//! the sender likes.

use super::nodes::{NodeId, NodeKind, Nodes};
use super::scalar::Scalar;
use super::{YamlDocument, go_syntax};
use kubelith_meta::{Map, Str, Value, text};
use std::collections::{HashMap, HashSet};

/// Bytes of text that aliases may repeat. The reference bounds only the number of values, and would build
/// gigabytes from a short document that repeats one long string.
const MAX_ALIASED_BYTES: usize = 32 << 20;

/// Duplicate keys beyond this number are not listed.
const MAX_DUPLICATES: usize = 100;

const EXCESSIVE: &str = "document contains excessive aliasing";

pub(super) struct Decoder<'n> {
    nodes: &'n Nodes,
    frames: Vec<Frame<'n>>,
    values: Vec<Value>,
    duplicates: Vec<String>,
    /// Values read, and those of them inside aliases: how the reference recognises bombs.
    decoded: usize,
    aliased: usize,
    aliased_bytes: usize,
    alias_depth: usize,
    /// Aliases being expanded.
    active: HashSet<NodeId>,
    /// The first key that no JSON object can have, and the first number that JSON cannot write. Both are errors only
    /// once the whole document has been read.
    bad_key: Option<String>,
    bad_number: Option<String>,
}

enum Frame<'n> {
    Sequence { children: &'n [NodeId], next: usize, start: usize },
    Mapping(Box<Mapping<'n>>),
    Alias { id: NodeId, target: Option<NodeId>, value: Value },
}

struct Mapping<'n> {
    /// Where members come from, the current source last: the mapping itself, and those merged into it.
    sources: Vec<Source<'n>>,
    entries: Entries,
    /// The key whose value is being read, and the line of that value.
    key: Scalar,
    line: usize,
}

struct Source<'n> {
    children: &'n [NodeId],
    next: usize,
    alias: Option<NodeId>,
}

/// What to do next.
enum Step {
    Read(NodeId),
    /// A value is complete and belongs into the innermost open collection.
    Done(Value),
}

impl<'n> Decoder<'n> {
    pub fn new(nodes: &'n Nodes) -> Decoder<'n> {
        Decoder {
            nodes,
            frames: Vec::new(),
            values: Vec::new(),
            duplicates: Vec::new(),
            decoded: 0,
            aliased: 0,
            aliased_bytes: 0,
            alias_depth: 0,
            active: HashSet::new(),
            bad_key: None,
            bad_number: None,
        }
    }

    pub fn document(mut self, root: NodeId) -> Result<YamlDocument, String> {
        // The document itself counts as a value.
        self.decoded = 1;
        let value = self.value(root)?;
        if let Some(e) = self.bad_key.or(self.bad_number) {
            return Err(e);
        }
        Ok(YamlDocument { value, duplicates: self.duplicates })
    }

    fn value(&mut self, root: NodeId) -> Result<Value, String> {
        let base = self.frames.len();
        let mut step = Step::Read(root);
        loop {
            step = match step {
                Step::Read(id) => self.begin(id)?,
                Step::Done(value) if self.frames.len() == base => return Ok(value),
                Step::Done(value) => {
                    self.attach(value)?;
                    self.advance()?
                }
            };
        }
    }

    fn begin(&mut self, id: NodeId) -> Result<Step, String> {
        self.count()?;
        match &self.nodes.get(id).kind {
            NodeKind::Scalar { value, tag, implicit } => {
                self.count_bytes(value.len())?;
                let scalar = Scalar::read(value, tag, *implicit).map_err(|e| format!("yaml: {e}"))?;
                if let Scalar::Float(f) = scalar
                    && !f.is_finite()
                {
                    self.bad_number.get_or_insert_with(|| format!("json: unsupported value: {}", text::float_v(f)));
                }
                Ok(Step::Done(scalar.into_value()))
            }
            NodeKind::Sequence(children) => {
                self.frames.push(Frame::Sequence { children, next: 0, start: self.values.len() });
                self.advance()
            }
            NodeKind::Mapping(children) => {
                let sources = vec![Source { children, next: 0, alias: None }];
                let mapping = Mapping { sources, entries: Entries::default(), key: Scalar::Null, line: 0 };
                self.frames.push(Frame::Mapping(Box::new(mapping)));
                self.advance()
            }
            NodeKind::Alias { target, .. } => {
                self.enter_alias(id)?;
                self.frames.push(Frame::Alias { id, target: Some(*target), value: Value::Null });
                self.advance()
            }
        }
    }

    fn attach(&mut self, value: Value) -> Result<(), String> {
        match self.frames.last_mut() {
            Some(Frame::Sequence { .. }) => self.values.push(value),
            Some(Frame::Alias { value: slot, .. }) => *slot = value,
            Some(Frame::Mapping(mapping)) => {
                let key = std::mem::replace(&mut mapping.key, Scalar::Null);
                if mapping.entries.set(&key, value) && self.duplicates.len() < MAX_DUPLICATES {
                    let key = go_syntax::scalar(&key);
                    self.duplicates.push(format!("line {}: key {key} already set in map", mapping.line));
                }
            }
            None => {}
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Step, String> {
        match self.frames.last_mut() {
            Some(Frame::Sequence { children, next, start }) => match children.get(*next) {
                Some(&child) => {
                    *next += 1;
                    Ok(Step::Read(child))
                }
                None => {
                    let items = self.values.split_off(*start);
                    self.frames.pop();
                    Ok(Step::Done(Value::Array(items)))
                }
            },
            Some(Frame::Alias { id, target, value }) => match target.take() {
                Some(target) => Ok(Step::Read(target)),
                None => {
                    let (id, value) = (*id, std::mem::take(value));
                    self.leave_alias(id);
                    self.frames.pop();
                    Ok(Step::Done(value))
                }
            },
            Some(Frame::Mapping(_)) => self.advance_mapping(),
            None => Ok(Step::Done(Value::Null)),
        }
    }

    /// Reads keys up to one whose value is to be read next.
    fn advance_mapping(&mut self) -> Result<Step, String> {
        loop {
            let Some(Frame::Mapping(mapping)) = self.frames.last_mut() else { return Ok(Step::Done(Value::Null)) };
            let Some(source) = mapping.sources.last_mut() else {
                let entries = std::mem::take(&mut mapping.entries);
                self.frames.pop();
                let (members, bad_key) = entries.into_map();
                self.bad_key = self.bad_key.take().or(bad_key);
                return Ok(Step::Done(Value::Object(members)));
            };
            let [key, value] = match source.children.get(source.next..source.next + 2) {
                Some(&[key, value]) => [key, value],
                _ => {
                    let alias = mapping.sources.pop().and_then(|source| source.alias);
                    if let Some(alias) = alias {
                        self.leave_alias(alias);
                    }
                    continue;
                }
            };
            source.next += 2;
            if self.is_merge(key) {
                self.merge(value)?;
                continue;
            }
            let key = self.key(key)?;
            let line = self.nodes.get(value).line;
            if let Some(Frame::Mapping(mapping)) = self.frames.last_mut() {
                mapping.key = key;
                mapping.line = line;
            }
            return Ok(Step::Read(value));
        }
    }

    fn is_merge(&self, id: NodeId) -> bool {
        matches!(&self.nodes.get(id).kind, NodeKind::Scalar { value, tag, implicit }
            if value == "<<" && (*implicit || tag == "tag:yaml.org,2002:merge"))
    }

    /// Makes one mapping, or several in a sequence, sources of the current one. What is read later wins, so the
    /// first of a sequence comes last.
    fn merge(&mut self, id: NodeId) -> Result<(), String> {
        let mut sources = Vec::new();
        match &self.nodes.get(id).kind {
            NodeKind::Sequence(children) => {
                for &child in children {
                    sources.push(self.mapping_of(child)?);
                }
            }
            _ => sources.push(self.mapping_of(id)?),
        }
        for source in sources.iter().rev() {
            self.count()?;
            if let Some(alias) = source.alias {
                self.enter_alias(alias)?;
                self.count()?;
            }
        }
        if let Some(Frame::Mapping(mapping)) = self.frames.last_mut() {
            mapping.sources.extend(sources);
        }
        Ok(())
    }

    fn mapping_of(&self, id: NodeId) -> Result<Source<'n>, String> {
        let (target, alias) = match &self.nodes.get(id).kind {
            NodeKind::Alias { target, .. } => (*target, Some(id)),
            _ => (id, None),
        };
        match &self.nodes.get(target).kind {
            NodeKind::Mapping(children) => Ok(Source { children, next: 0, alias }),
            _ => Err("yaml: map merge requires map or sequence of maps as the value".into()),
        }
    }

    /// A key must be a scalar, or an alias of one.
    fn key(&mut self, id: NodeId) -> Result<Scalar, String> {
        let target = match &self.nodes.get(id).kind {
            NodeKind::Alias { target, .. } => {
                self.count()?;
                *target
            }
            _ => id,
        };
        let NodeKind::Scalar { value, tag, implicit } = &self.nodes.get(target).kind else {
            let value = self.value(id)?;
            return Err(format!("yaml: invalid map key: {}", go_syntax::value(&value)));
        };
        self.count()?;
        Scalar::read(value, tag, *implicit).map_err(|e| format!("yaml: {e}"))
    }

    fn enter_alias(&mut self, id: NodeId) -> Result<(), String> {
        if !self.active.insert(id) {
            let NodeKind::Alias { name, .. } = &self.nodes.get(id).kind else { return Ok(()) };
            return Err(format!("yaml: anchor '{name}' value contains itself"));
        }
        self.alias_depth += 1;
        Ok(())
    }

    fn leave_alias(&mut self, id: NodeId) {
        self.active.remove(&id);
        self.alias_depth -= 1;
    }

    /// Counts a value. Small documents may be nearly all aliases, large ones hardly.
    fn count(&mut self) -> Result<(), String> {
        self.decoded += 1;
        if self.alias_depth > 0 {
            self.aliased += 1;
        }
        let allowed = match self.decoded {
            ..=400_000 => 0.99,
            4_000_000.. => 0.10,
            n => 0.99 - 0.89 * ((n - 400_000) as f64 / 3_600_000.0),
        };
        if self.aliased > 100 && self.decoded > 1000 && self.aliased as f64 / self.decoded as f64 > allowed {
            return Err(format!("yaml: {EXCESSIVE}"));
        }
        Ok(())
    }

    fn count_bytes(&mut self, len: usize) -> Result<(), String> {
        if self.alias_depth > 0 {
            self.aliased_bytes += len;
            if self.aliased_bytes > MAX_ALIASED_BYTES {
                return Err(format!("yaml: {EXCESSIVE}"));
            }
        }
        Ok(())
    }
}

/// The members of a mapping by their keys as YAML tells them apart: 1 and "1" are two.
#[derive(Default)]
struct Entries {
    list: Vec<(Str, Value)>,
    tags: Vec<Tag>,
    /// Where keys are in the list, once it is long.
    index: HashMap<(Tag, Str), usize>,
    /// A key that no JSON object can have, with its value.
    unsupported: Option<(Scalar, Value)>,
}

/// Mappings up to this size are searched key by key.
const SMALL: usize = 16;

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Tag {
    Str,
    Int,
    Float,
    Bool,
}

impl Entries {
    /// Sets a member; true if the key was there before.
    fn set(&mut self, key: &Scalar, value: Value) -> bool {
        let tag = match key {
            Scalar::Str(_) => Tag::Str,
            Scalar::Int(_) => Tag::Int,
            Scalar::Float(_) => Tag::Float,
            Scalar::Bool(_) => Tag::Bool,
            Scalar::Null | Scalar::Uint(_) => {
                return self.unsupported.replace((key.clone(), value)).is_some_and(|(before, _)| before == *key);
            }
        };
        let name = key.key().unwrap_or_default();
        if let Some(at) = self.find(tag, &name) {
            self.list[at].1 = value;
            return true;
        }
        if self.list.len() >= SMALL {
            if self.index.is_empty() {
                let known = self.tags.iter().zip(&self.list).enumerate();
                self.index = known.map(|(i, (tag, (name, _)))| ((*tag, name.clone()), i)).collect();
            }
            self.index.insert((tag, name.clone()), self.list.len());
        }
        self.list.push((name, value));
        self.tags.push(tag);
        false
    }

    fn find(&self, tag: Tag, name: &Str) -> Option<usize> {
        if !self.index.is_empty() {
            return self.index.get(&(tag, name.clone())).copied();
        }
        self.list.iter().zip(&self.tags).position(|((k, _), t)| *t == tag && k == name)
    }

    fn into_map(self) -> (Map, Option<String>) {
        let bad_key = self.unsupported.map(|(key, value)| {
            let kind = if key == Scalar::Null { "%!s(<nil>)" } else { "uint64" };
            let (key, value) = (go_syntax::scalar(&key), go_syntax::value(&value));
            format!("unsupported map key of type: {kind}, key: {key}, value: {value}")
        });
        (self.list.into_iter().collect(), bad_key)
    }
}
