//! Adding paths to a set that is not read: they are put into its text.
//!
//! Who changes a field for the first time owns one more, of a hundred. To read the others, and write them again, is most of what
//! such a change costs otherwise.

use super::{Entry, Level, NodeKind, Outline, Reader};
use crate::fieldset::PathElement;
use crate::fieldset::set::{Node, Set};

/// Says that the path to an object is in the set, too.
const SELF: &str = r#"".":{},"#;

impl Outline {
    /// The text of the union of this set and another. `None` if what is new is not plain.
    pub(crate) fn with(&self, set: &Set) -> Option<String> {
        // The path to the whole is in no set, and not written.
        if self.text.starts_with(r#"{".""#) {
            return None;
        }
        let mut pieces = Pieces { outline: self, list: Vec::new() };
        let lead = if self.is_empty() { "" } else { "," };
        pieces.add(self.root(), self.text.len() - 1, lead, set.nodes())?;
        let mut text = String::with_capacity(self.text.len() + pieces.list.iter().map(|(_, p)| p.len()).sum::<usize>());
        let mut copied = 0;
        for (at, piece) in pieces.list {
            text.push_str(&self.text[copied..at]);
            text.push_str(&piece);
            copied = at;
        }
        text.push_str(&self.text[copied..]);
        Some(text)
    }
}

/// What is put into the text, and where, in the order of places.
struct Pieces<'o> {
    outline: &'o Outline,
    list: Vec<(usize, String)>,
}

impl Pieces<'_> {
    /// Adds nodes to an object, which ends at `close`. `lead` stands before the first one behind all that is there.
    fn add(&mut self, mut there: Level<'_>, close: usize, mut lead: &'static str, nodes: &[Node]) -> Option<()> {
        for node in nodes {
            let key = json_key(&node.element);
            let kind = plain_kind(key.as_bytes())?;
            while let Some((entry, _)) = there.first()
                && comes_before(self.outline.key(entry), &node.element, kind)?
            {
                there.at = entry.next as usize;
            }
            match there.first() {
                Some((entry, below)) if self.outline.key(entry) == key.as_bytes() => self.add_to(entry, below, node)?,
                Some((entry, _)) => self.list.push((entry.start as usize - 1, new_text(&key, node)? + ",")),
                None => self.list.push((close, std::mem::replace(&mut lead, ",").to_owned() + &new_text(&key, node)?)),
            }
        }
        Some(())
    }

    /// Adds what is in a node to an entry of the same element.
    fn add_to(&mut self, entry: Entry, below: Level<'_>, node: &Node) -> Option<()> {
        let (start, close) = (entry.end as usize + 3, entry.close as usize);
        if node.member && !entry.member {
            self.list.push((start, SELF.to_owned()));
        }
        let lead = if start == close { SELF } else { "," };
        self.add(below, close, lead, node.children.nodes())
    }
}

impl<'o> Level<'o> {
    fn first(self) -> Option<(Entry, Level<'o>)> {
        self.entries().next()
    }
}

/// The key of an element, without its quotes.
fn json_key(element: &PathElement) -> String {
    let mut key = String::with_capacity(64);
    element.push_json_key(&mut key);
    key.pop();
    key.remove(0);
    key
}

/// The kind of a key; `None` if its place among others cannot be told from its text.
fn plain_kind(key: &[u8]) -> Option<NodeKind> {
    let mut reader = Reader { text: key, at: 0, entries: Vec::new() };
    reader.key().filter(|_| reader.at == key.len())
}

/// Whether a key comes before an element of this kind.
fn comes_before(key: &[u8], element: &PathElement, kind: NodeKind) -> Option<bool> {
    let kind_before = NodeKind::of(key)?;
    if let (NodeKind::Field, PathElement::Field(name)) = (kind_before, element) {
        return Some(&key[2..] < name.as_bytes());
    }
    if kind_before != kind {
        return Some(kind_before < kind);
    }
    // Numbers, strings and lists of fields have an order of their own.
    let key = std::str::from_utf8(key).ok()?.replace("\\\"", "\"");
    Some(PathElement::parse(&key).ok()? < *element)
}

/// A node as it stands in an object.
fn new_text(key: &str, node: &Node) -> Option<String> {
    let mut text = format!("\"{key}\":");
    let below = text.len();
    node.children.write_json(&mut text, node.member);
    let mut reader = Reader { text: &text.as_bytes()[below..], at: 0, entries: Vec::new() };
    reader.object(0)?;
    Some(text)
}
