//! `fieldsV1` written as it is found, without a set in between.

use super::element::PathElement;
use super::set::{Node, Set};
use kubelith_meta::Value;
use kubelith_meta::text::{is_never_escaped, push_json_escaped};

/// Text of a set under way: an open object whose entries come in the order of path elements.
pub(crate) struct FieldsWriter {
    out: String,
}

/// The name of a field.
#[derive(Clone, Copy)]
pub(crate) enum Name<'n> {
    /// Nothing in it is escaped.
    Plain(&'n str),
    Any(&'n str),
}

/// Fields that are not to be written, at some depth.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mask<'a> {
    /// Left out themselves, but not what is below them.
    pub(crate) nobodys: Option<&'a Set>,
    /// Left out with all below them.
    pub(crate) excluded: Option<&'a Set>,
}

/// What a mask says of one field.
pub(crate) enum Masked<'a> {
    /// Nothing of it is written.
    All,
    /// It is written, but for what `below` says, and itself if it is `itself`.
    Rest { itself: bool, below: Mask<'a> },
}

impl<'a> Mask<'a> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.nobodys.is_none() && self.excluded.is_none()
    }

    #[inline]
    pub(crate) fn of_field(&self, name: &str) -> Masked<'a> {
        match self.is_empty() {
            true => Masked::Rest { itself: false, below: Mask::default() },
            false => self.of_listed(name),
        }
    }

    fn of_listed(&self, name: &str) -> Masked<'a> {
        fn node<'s>(set: Option<&'s Set>, name: &str) -> Option<&'s Node> {
            set?.nodes().iter().find(|n| matches!(&n.element, PathElement::Field(field) if field == name))
        }
        let (nobodys, excluded) = (node(self.nobodys, name), node(self.excluded, name));
        if excluded.is_some_and(|n| n.member) {
            return Masked::All;
        }
        let below = |node: Option<&'a Node>| node.map(|n| &n.children).filter(|set| !set.is_empty());
        Masked::Rest {
            itself: nobodys.is_some_and(|n| n.member),
            below: Mask { nobodys: below(nobodys), excluded: below(excluded) },
        }
    }
}

impl FieldsWriter {
    pub(crate) fn new() -> FieldsWriter {
        let mut out = String::with_capacity(4096);
        out.push('{');
        FieldsWriter { out }
    }

    /// The text; `None` if nothing was written.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.out.push('}');
        (self.out.len() > 2).then_some(self.out)
    }

    /// The entry of a field with nothing below it, if it is in the set.
    pub(crate) fn leaf(&mut self, name: Name<'_>, member: bool) {
        if member {
            self.begin_field(name);
            self.out.push_str("\":{}");
        }
    }

    /// The entry of a field. `member` says whether the field itself is in the set; `below` writes what is below it.
    pub(crate) fn field<R>(&mut self, name: Name<'_>, member: bool, below: impl FnOnce(&mut Self) -> R) -> R {
        let start = self.out.len();
        self.begin_field(name);
        self.entry(start, member, below)
    }

    /// The entry of a list element that is in the set.
    pub(crate) fn element<R>(&mut self, element: &PathElement, below: impl FnOnce(&mut Self) -> R) -> R {
        let start = self.begin();
        element.push_json_key(&mut self.out);
        self.out.pop();
        self.entry(start, true, below)
    }

    /// The entry of an element that has these values of its keys, in order of the keys.
    pub(crate) fn keyed<'k, R>(
        &mut self,
        keys: impl Iterator<Item = (&'k str, &'k Value)>,
        below: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let start = self.begin();
        self.out.push_str("\"k:{");
        for (i, (name, value)) in keys.enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.quoted(name);
            self.out.push(':');
            match value {
                Value::String(text) => self.quoted(text),
                other => push_json_escaped(&mut self.out, &kubelith_meta::text::json(other)),
            }
        }
        self.out.push('}');
        self.entry(start, true, below)
    }

    #[inline]
    fn begin_field(&mut self, name: Name<'_>) {
        self.out.push_str(if self.is_first() { "\"f:" } else { ",\"f:" });
        match name {
            Name::Plain(name) => self.out.push_str(name),
            Name::Any(name) => push_json_escaped(&mut self.out, name),
        }
    }

    /// A JSON string inside of a JSON string.
    fn quoted(&mut self, text: &str) {
        self.out.push_str("\\\"");
        if is_plain(text) {
            self.out.push_str(text);
        } else {
            let mut once = String::with_capacity(text.len() + 8);
            push_json_escaped(&mut once, text);
            push_json_escaped(&mut self.out, &once);
        }
        self.out.push_str("\\\"");
    }

    #[inline]
    fn begin(&mut self) -> usize {
        let start = self.out.len();
        if !self.is_first() {
            self.out.push(',');
        }
        start
    }

    /// Whether nothing was written into the open object so far.
    #[inline]
    fn is_first(&self) -> bool {
        self.out.as_bytes().last() == Some(&b'{')
    }

    /// The rest of an entry whose key is written but for its closing quote. One that says nothing is taken back.
    fn entry<R>(&mut self, start: usize, member: bool, below: impl FnOnce(&mut Self) -> R) -> R {
        self.out.push_str("\":{");
        let body = self.out.len();
        if member {
            self.out.push_str("\".\":{}");
        }
        let empty = self.out.len();
        let done = below(self);
        if self.out.len() == empty {
            self.out.truncate(if member { body } else { start });
        }
        if member || self.out.len() > start {
            self.out.push('}');
        }
        done
    }
}

/// Whether a text is the same in JSON, and in JSON inside of JSON: printed ASCII that is never escaped.
#[inline]
fn is_plain(text: &str) -> bool {
    text.bytes().all(is_never_escaped)
}
