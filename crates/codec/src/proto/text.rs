//! JSON text laid out to be encoded: a flat list of what is in it, in the order of the text. It is made in one pass and without an
//! allocation for each value, where reading the same text makes a tree. `{"a":[1,"b"],"c":null}` is an object of five nodes: itself,
//! the array `a` of three nodes, 1, "b", and `c`.

use super::source::{Form, Source};
use crate::json;
use crate::json::lexer::{Lexer, Token};
use crate::json::number;
use kubelith_meta::Value;
use kubelith_meta::keys::Head;
use std::borrow::Cow;

/// Containers inside one another. Built-in kinds have a dozen; what is deeper is read into values, which need no stack for it.
const MAX_NESTING: usize = 100;

/// A value with its name takes more bytes than this, mostly, so the list of nodes rarely grows.
const SHORT_VALUE: usize = 12;
/// More than that are room for 80 KB: large objects mostly have large values.
const MOST_NODES: usize = 2048;

/// How the members of the outermost object are ordered. In all others they are in the order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Names,
    /// As clients get API objects: apiVersion and kind come first.
    Any,
}

/// JSON whose values can be looked at.
pub(super) struct Text<'j> {
    nodes: Vec<Node<'j>>,
}

/// A value. What is in a container follows it.
struct Node<'j> {
    /// Of the member that it is, if it is one.
    name: &'j str,
    value: NodeValue<'j>,
}

enum NodeValue<'j> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(&'j str),
    /// A string that was written with escapes.
    Unescaped(Box<str>),
    /// As [`Value::Raw`].
    Raw(&'j str),
    Array(Extent),
    Object(Extent, Order),
}

/// How large a container is.
#[derive(Clone, Copy, Default)]
struct Extent {
    /// The nodes that it takes, with its own.
    nodes: u32,
    items: u32,
}

/// A value in a text: the first of these nodes, with what is in it.
#[derive(Clone, Copy)]
pub(super) struct InText<'t> {
    nodes: &'t [Node<'t>],
}

impl<'j> Text<'j> {
    /// `None` if it is not JSON as this program writes it, or is of a rare kind. A tree of values can be made of more.
    pub fn read(json: &'j [u8], order: Order) -> Option<Text<'j>> {
        u32::try_from(json.len()).ok()?;
        let nodes = Vec::with_capacity((json.len() / SHORT_VALUE).min(MOST_NODES));
        let mut reader = Reader { lexer: Lexer::new(json), nodes, order, names: [""; FIELDS_DEPTH] };
        reader.value("", 0)?;
        reader.lexer.end().ok()?;
        Some(Text { nodes: reader.nodes })
    }

    /// The string that the outermost object has as `name`, or `""`.
    pub fn root_string(&self, name: &str) -> &str {
        let found = self.root().members().filter(|(_, found, _)| *found == name).last();
        found.and_then(|(_, _, value)| value.as_str()).unwrap_or("")
    }

    pub fn root(&self) -> InText<'_> {
        InText { nodes: &self.nodes }
    }
}

/// How many containers there are around a field set: the object, its metadata, managedFields, and an entry of them.
const FIELDS_DEPTH: usize = 4;

struct Reader<'j> {
    lexer: Lexer<'j>,
    nodes: Vec<Node<'j>>,
    order: Order,
    /// Of the outermost containers that are open.
    names: [&'j str; FIELDS_DEPTH],
}

impl<'j> Reader<'j> {
    /// Reads a value that stands inside `depth` containers.
    fn value(&mut self, name: &'j str, depth: usize) -> Option<()> {
        if let Some(text) = self.lexer.plain_string() {
            self.nodes.push(Node { name, value: NodeValue::String(text) });
            return Some(());
        }
        let value = match self.lexer.peek()? {
            b'{' if self.is_fields(name, depth) => {
                let start = self.lexer.position();
                self.lexer.skip_fields(depth).ok()?;
                NodeValue::Raw(std::str::from_utf8(self.lexer.since(start)).ok()?)
            }
            first @ (b'{' | b'[') => {
                if depth == MAX_NESTING {
                    return None;
                }
                if let Some(place) = self.names.get_mut(depth) {
                    *place = name;
                }
                return if first == b'{' { self.object(name, depth) } else { self.array(name, depth) };
            }
            _ => self.scalar(depth)?,
        };
        self.nodes.push(Node { name, value });
        Some(())
    }

    fn scalar(&mut self, depth: usize) -> Option<NodeValue<'j>> {
        Some(match self.lexer.value(depth).ok()? {
            Token::Null => NodeValue::Null,
            Token::Bool(b) => NodeValue::Bool(b),
            // The only number that is printed differently once it was read, and what has it inside may not have been read yet.
            Token::Number(n) if n.text == "-0" => return None,
            Token::Number(n) => match number::untyped(n)? {
                Value::Int(i) => NodeValue::Int(i),
                other => NodeValue::Float(other.as_f64()?),
            },
            Token::String(Cow::Borrowed(text)) => NodeValue::String(text),
            Token::String(Cow::Owned(text)) => NodeValue::Unescaped(text.into()),
            Token::BeginArray | Token::BeginObject => return None,
        })
    }

    fn array(&mut self, name: &'j str, depth: usize) -> Option<()> {
        let (at, mut items) = (self.begin(name, NodeValue::Array), 0);
        if !self.lexer.pass(b']') {
            loop {
                self.value("", depth + 1)?;
                items += 1;
                if !self.lexer.pass(b',') {
                    break;
                }
            }
            self.lexer.pass(b']').then_some(())?;
        }
        self.end(at, items, NodeValue::Array)
    }

    fn object(&mut self, name: &'j str, depth: usize) -> Option<()> {
        let order = if depth == 0 { self.order } else { Order::Names };
        let object = |extent| NodeValue::Object(extent, order);
        let (at, mut items) = (self.begin(name, object), 0);
        let (mut last, mut last_head) = ("", Head::default());
        if !self.lexer.pass(b'}') {
            loop {
                // Names with escapes are rare.
                let name = self.lexer.plain_string()?;
                let head = Head::of(name);
                let is_behind = head > last_head || (head == last_head && (items == 0 || name > last));
                if !self.lexer.pass(b':') || !(is_behind || order == Order::Any) {
                    return None;
                }
                (last, last_head) = (name, head);
                self.value(name, depth + 1)?;
                items += 1;
                if !self.lexer.pass(b',') {
                    break;
                }
            }
            self.lexer.pass(b'}').then_some(())?;
        }
        self.end(at, items, object)
    }

    /// Opens a container; the cursor is at its bracket.
    fn begin(&mut self, name: &'j str, container: impl Fn(Extent) -> NodeValue<'j>) -> usize {
        self.nodes.push(Node { name, value: container(Extent::default()) });
        let _ = self.lexer.pass(b'{') || self.lexer.pass(b'[');
        self.nodes.len() - 1
    }

    fn end(&mut self, at: usize, items: u32, container: impl Fn(Extent) -> NodeValue<'j>) -> Option<()> {
        let nodes = u32::try_from(self.nodes.len() - at).ok()?;
        self.nodes[at].value = container(Extent { nodes, items });
        Some(())
    }

    /// Whether this is a field set that readers leave as it is: half of the text of many objects.
    fn is_fields(&self, name: &str, depth: usize) -> bool {
        depth == FIELDS_DEPTH && name == "fieldsV1" && self.names == ["", "metadata", "managedFields", ""]
    }
}

impl<'t> InText<'t> {
    /// The values in a container.
    fn inside(self) -> Values<'t> {
        Values { nodes: &self.nodes[1..] }
    }
}

/// The values that stand one behind the other in `nodes`.
struct Values<'t> {
    nodes: &'t [Node<'t>],
}

impl<'t> Iterator for Values<'t> {
    type Item = InText<'t>;

    #[inline]
    fn next(&mut self) -> Option<InText<'t>> {
        let len = match self.nodes.first()?.value {
            NodeValue::Array(extent) | NodeValue::Object(extent, _) => extent.nodes as usize,
            _ => 1,
        };
        let (nodes, rest) = self.nodes.split_at(len);
        self.nodes = rest;
        Some(InText { nodes })
    }
}

impl<'t> Source<'t> for InText<'t> {
    #[inline]
    fn form(self) -> Form {
        match self.nodes[0].value {
            NodeValue::Null => Form::Null,
            NodeValue::Object(..) => Form::Object,
            NodeValue::Array(_) => Form::List,
            _ => Form::Scalar,
        }
    }

    #[inline]
    fn as_bool(self) -> Option<bool> {
        if let NodeValue::Bool(b) = self.nodes[0].value { Some(b) } else { None }
    }

    #[inline]
    fn as_i64(self) -> Option<i64> {
        if let NodeValue::Int(i) = self.nodes[0].value { Some(i) } else { None }
    }

    fn as_f64(self) -> Option<f64> {
        match self.nodes[0].value {
            NodeValue::Int(i) => Some(i as f64),
            NodeValue::Float(f) => Some(f),
            _ => None,
        }
    }

    #[inline]
    fn as_str(self) -> Option<&'t str> {
        match &self.nodes[0].value {
            NodeValue::String(text) => Some(text),
            NodeValue::Unescaped(text) => Some(text),
            _ => None,
        }
    }

    #[inline]
    fn items(self) -> impl Iterator<Item = InText<'t>> {
        if self.form() == Form::List { self.inside() } else { Values { nodes: &[] } }
    }

    #[inline]
    fn members(self) -> impl Iterator<Item = (Head, &'t str, InText<'t>)> {
        let values = if self.form() == Form::Object { self.inside() } else { Values { nodes: &[] } };
        values.map(|value| {
            let name = value.nodes[0].name;
            (Head::of(name), name, value)
        })
    }

    #[inline]
    fn len(self) -> usize {
        if let NodeValue::Object(extent, _) = self.nodes[0].value { extent.items as usize } else { 0 }
    }

    #[inline]
    fn is_sorted(self) -> bool {
        !matches!(self.nodes[0].value, NodeValue::Object(_, Order::Any))
    }

    fn write_json(self, out: &mut Vec<u8>) {
        json::write(out, &self.to_value());
    }

    #[inline]
    fn unread(self) -> Option<&'t [u8]> {
        None
    }
}

impl InText<'_> {
    /// The value that would be read. Nested no deeper than texts are.
    fn to_value(self) -> Value {
        match &self.nodes[0].value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(b) => Value::Bool(*b),
            NodeValue::Int(i) => Value::Int(*i),
            NodeValue::Float(f) => Value::Float(*f),
            NodeValue::String(text) => Value::from(*text),
            NodeValue::Unescaped(text) => Value::from(&**text),
            NodeValue::Raw(text) => Value::Raw((*text).into()),
            NodeValue::Array(_) => Value::Array(self.items().map(InText::to_value).collect()),
            NodeValue::Object(..) => {
                Value::Object(self.members().map(|(_, name, value)| (name, value.to_value())).collect())
            }
        }
    }
}
