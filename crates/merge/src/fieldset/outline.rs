//! A set as it is written, looked at without being read.
//!
//! Most entries of `managedFields` leave a request as they came: all there is to ask is whether they hold one of a few
//! fields. Answering that from the text, of which only the places of the keys are noted, takes a fraction of the time
//! that making a tree of it does. Text that is not plain, or not as [`Set::to_json`] writes it, has no outline.

mod insert;

use super::element::PathElement;
use super::set::Set;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Sets are rarely deeper than objects.
const MAX_DEPTH: usize = 64;
/// Integers of this length are the same number as a double, too.
const MAX_DIGITS: usize = 15;

/// The text of a set and where its elements stand in it. Siblings are in ascending order, so none is there twice, and
/// the keys of two equal elements are the same bytes.
#[derive(Debug)]
pub(crate) struct Outline {
    text: Arc<str>,
    entries: Vec<Entry>,
    /// The type that the set was last found to be in line with: an address, 0 at first.
    in_line_with: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Where the key stands between its quotes.
    start: u32,
    end: u32,
    /// The entry after this one and all below it.
    next: u32,
    /// Where the object behind the key is closed.
    close: u32,
    /// The path that ends here is in the set.
    member: bool,
}

/// The entries at one place in a set.
#[derive(Clone, Copy)]
pub(crate) struct Level<'o> {
    outline: &'o Outline,
    at: usize,
    end: usize,
}

impl Outline {
    /// Whether the set was found to be in line with the type at this address.
    pub(crate) fn is_in_line_with(&self, ty: usize) -> bool {
        self.in_line_with.load(Relaxed) == ty
    }

    pub(crate) fn note_in_line_with(&self, ty: usize) {
        self.in_line_with.store(ty, Relaxed);
    }

    /// `None` if the text must be read to be understood.
    pub(crate) fn of(text: &Arc<str>) -> Option<Outline> {
        if u32::try_from(text.len()).is_err() {
            return None;
        }
        let mut reader = Reader { text: text.as_bytes(), at: 0, entries: Vec::with_capacity(text.len() / 24) };
        reader.object(0)?;
        let is_whole = reader.at == text.len();
        is_whole.then(|| Outline { text: text.clone(), entries: reader.entries, in_line_with: AtomicUsize::new(0) })
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn root(&self) -> Level<'_> {
        Level { outline: self, at: 0, end: self.entries.len() }
    }

    /// Whether no path is in both sets.
    pub(crate) fn is_disjoint(&self, set: &Set) -> bool {
        self.root().is_disjoint(set)
    }

    /// Whether every path of `set` is in this one.
    pub(crate) fn covers(&self, set: &Set) -> bool {
        self.root().covers(set)
    }

    fn key(&self, entry: Entry) -> &[u8] {
        &self.text.as_bytes()[entry.start as usize..entry.end as usize]
    }
}

impl<'o> Level<'o> {
    /// What is here: the field's name, if it is one, and what is below it.
    pub(crate) fn iter(self) -> impl Iterator<Item = (Option<&'o str>, Level<'o>)> {
        self.entries().map(move |(entry, below)| {
            let key = &self.outline.text[entry.start as usize..entry.end as usize];
            (key.strip_prefix("f:"), below)
        })
    }

    pub(crate) fn is_empty(self) -> bool {
        self.at == self.end
    }

    fn entries(mut self) -> impl Iterator<Item = (Entry, Level<'o>)> {
        std::iter::from_fn(move || {
            if self.is_empty() {
                return None;
            }
            let entry = self.outline.entries[self.at];
            let below = Level { outline: self.outline, at: self.at + 1, end: entry.next as usize };
            self.at = entry.next as usize;
            Some((entry, below))
        })
    }

    fn find(self, element: &PathElement) -> Option<(Entry, Level<'o>)> {
        if let PathElement::Field(name) = element {
            let is_field = |key: &[u8]| key.strip_prefix(b"f:") == Some(name.as_bytes());
            return self.entries().find(|(entry, _)| is_field(self.outline.key(*entry)));
        }
        let mut key = String::with_capacity(64);
        element.push_json_key(&mut key);
        let key = &key.as_bytes()[1..key.len() - 1];
        self.entries().find(|(entry, _)| self.outline.key(*entry) == key)
    }

    fn is_disjoint(self, set: &Set) -> bool {
        set.nodes().iter().all(|node| match self.find(&node.element) {
            Some((entry, below)) => !(node.member && entry.member) && below.is_disjoint(&node.children),
            None => true,
        })
    }

    fn covers(self, set: &Set) -> bool {
        set.nodes().iter().all(|node| match self.find(&node.element) {
            Some((entry, below)) => (entry.member || !node.member) && below.covers(&node.children),
            None => false,
        })
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    entries: Vec<Entry>,
}

/// Which of the four kinds of path elements a key is, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NodeKind {
    Field,
    Key,
    Value,
    Index,
}

impl NodeKind {
    /// Of a key.
    fn of(key: &[u8]) -> Option<NodeKind> {
        match key.first_chunk()? {
            b"f:" => Some(NodeKind::Field),
            b"k:" => Some(NodeKind::Key),
            b"v:" => Some(NodeKind::Value),
            b"i:" => Some(NodeKind::Index),
            _ => None,
        }
    }
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, expected: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(expected).then(|| self.at += expected.len())
    }

    /// An object; whether the path to it is in the set.
    fn object(&mut self, depth: usize) -> Option<bool> {
        self.eat(b"{")?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(true);
        }
        if depth == MAX_DEPTH {
            return None;
        }
        let member = self.eat(b"\".\":{}").is_some();
        if member {
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return Some(true);
                }
                _ => self.eat(b",")?,
            }
        }
        let mut last: Option<(NodeKind, &'t [u8])> = None;
        loop {
            self.eat(b"\"")?;
            let start = self.at;
            let kind = self.key()?;
            let key = &self.text[start..self.at];
            if last.is_some_and(|last| !precedes(last, (kind, key))) {
                return None;
            }
            last = Some((kind, key));
            let (entry, end) = (self.entries.len(), self.at as u32);
            let leaf = Entry { start: start as u32, end, next: entry as u32 + 1, close: end + 3, member: true };
            self.entries.push(leaf);
            // Most are leaves.
            if self.eat(b"\":{}").is_none() {
                self.eat(b"\":")?;
                let is_member = self.object(depth + 1)?;
                let next = self.entries.len() as u32;
                let found = &mut self.entries[entry];
                (found.member, found.next, found.close) = (is_member, next, self.at as u32 - 1);
            }
            let end = self.peek()?;
            self.at += 1;
            match end {
                b',' => {}
                b'}' => return Some(member),
                _ => return None,
            }
        }
    }

    /// A key up to its closing quote.
    fn key(&mut self) -> Option<NodeKind> {
        let kind = NodeKind::of(&self.text[self.at..])?;
        self.at += 2;
        match kind {
            NodeKind::Field => self.plain(),
            NodeKind::Key => self.fields()?,
            NodeKind::Value => self.scalar()?,
            NodeKind::Index => self.integer()?,
        }
        Some(kind)
    }

    /// Text that JSON has no escapes for.
    fn plain(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|b| IS_PLAIN[usize::from(**b)]).count();
    }

    /// `{"name":"a","port":80}`, sorted by name, in a JSON string.
    fn fields(&mut self) -> Option<()> {
        self.eat(b"{")?;
        let mut last: Option<&[u8]> = None;
        loop {
            let name = self.string()?;
            if last.is_some_and(|last| last >= name) {
                return None;
            }
            last = Some(name);
            self.eat(b":")?;
            self.scalar()?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn scalar(&mut self) -> Option<()> {
        if self.peek()? == b'\\' { self.string().map(drop) } else { self.integer() }
    }

    fn string(&mut self) -> Option<&'t [u8]> {
        self.eat(b"\\\"")?;
        let start = self.at;
        self.plain();
        let text = &self.text[start..self.at];
        self.eat(b"\\\"")?;
        Some(text)
    }

    fn integer(&mut self) -> Option<()> {
        let digits = digits(&self.text[self.at..]);
        let is_plain = digits == 1 || (2..=MAX_DIGITS).contains(&digits) && self.peek() != Some(b'0');
        self.at += digits;
        is_plain.then_some(())
    }
}

/// By byte: whether JSON, as it is written here, has it as it is.
static IS_PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0x20;
    while byte < 0x7f {
        plain[byte as usize] = !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
        byte += 1;
    }
    plain
};

/// Where two texts differ first, if they do before the end of one of them.
fn difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let (Some(x), Some(y)) = (a[at..].first_chunk::<8>(), b[at..].first_chunk::<8>()) {
        match u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y) {
            0 => at += 8,
            differing => return Some(at + differing.trailing_zeros() as usize / 8),
        }
    }
    a[at..].iter().zip(&b[at..]).position(|(a, b)| a != b).map(|n| at + n)
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Whether an element comes before another, by their keys.
fn precedes(a: (NodeKind, &[u8]), b: (NodeKind, &[u8])) -> bool {
    if a.0 != b.0 {
        return a.0 < b.0;
    }
    let (kind, a, b) = (a.0, a.1, b.1);
    if kind == NodeKind::Field {
        return a < b;
    }
    let Some(at) = difference(a, b) else { return false };
    // Within integers, more digits are a larger number.
    let start = at - a[..at].iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let before = &a[..start];
    // Behind the name of a field; a string may begin with a colon.
    let is_integer = start == 2 || (before.ends_with(b"\\\":") && !before.ends_with(b":\\\":"));
    if is_integer {
        let (x, y) = (digits(&a[start..]), digits(&b[start..]));
        if x > 0 && y > 0 {
            return (x, a[at]) < (y, b[at]);
        }
    }
    // A string ends with a backslash, and comes before those that go on.
    let rank = |b: u8| if b == b'\\' { 0 } else { b };
    rank(a[at]).cmp(&rank(b[at])) == Ordering::Less
}

#[cfg(test)]
#[path = "outline_tests.rs"]
mod tests;
