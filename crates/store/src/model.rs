//! The data model: revisions, keys, values, requests and answers. It is etcd's.

use bytes::Bytes;
use std::fmt;

/// A point in the store's one history. Every successful write makes the next one; 0 is "none".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub i64);

impl Revision {
    pub const ZERO: Revision = Revision(0);

    pub fn next(self) -> Revision {
        Revision(self.0 + 1)
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One version of one key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Bytes,
    pub value: Bytes,
    /// The revision that made the key (since it was last deleted).
    pub create_revision: Revision,
    /// The revision that wrote this value.
    pub mod_revision: Revision,
    /// The value is readable but not stored as it would be written today (an older encryption key, say):
    /// an update that changes nothing must be written all the same.
    pub stale: bool,
}

/// Values can be Secrets: only their length is printed.
impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValue")
            .field("key", &String::from_utf8_lossy(&self.key))
            .field("value_len", &self.value.len())
            .field("create_revision", &self.create_revision.0)
            .field("mod_revision", &self.mod_revision.0)
            .field("stale", &self.stale)
            .finish()
    }
}

/// A half-open range of keys, `start <= key < end`. `end == None` has no upper bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Bytes,
    pub end: Option<Bytes>,
}

impl KeyRange {
    /// Exactly one key.
    pub fn key(key: impl Into<Bytes>) -> KeyRange {
        let start = key.into();
        let mut end = Vec::with_capacity(start.len() + 1);
        end.extend_from_slice(&start);
        end.push(0);
        KeyRange { start, end: Some(end.into()) }
    }

    /// All keys that begin with `prefix`. The empty prefix is everything.
    pub fn prefix(prefix: impl Into<Bytes>) -> KeyRange {
        let start = prefix.into();
        let end = prefix_end(&start);
        KeyRange { start, end }
    }

    pub fn all() -> KeyRange {
        KeyRange { start: Bytes::new(), end: None }
    }

    /// The same range without what comes before `start`: how a paged list goes on.
    pub fn from(mut self, start: impl Into<Bytes>) -> KeyRange {
        self.start = start.into();
        self
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..] && self.end.as_ref().is_none_or(|end| key < &end[..])
    }

    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| self.start >= end)
    }
}

/// The first key after all keys with this prefix: the last byte that can grow grows.
fn prefix_end(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|b| *b != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// What a range answers with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Select {
    #[default]
    KeysAndValues,
    /// `value` is empty.
    Keys,
    /// No items, only `count`.
    Count,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeRequest {
    pub range: KeyRange,
    /// The most items to answer with; 0 is no limit.
    pub limit: usize,
    /// `None` reads the newest revision.
    pub at: Option<Revision>,
    pub select: Select,
}

impl RangeRequest {
    pub fn new(range: KeyRange) -> RangeRequest {
        RangeRequest { range, limit: 0, at: None, select: Select::default() }
    }

    pub fn prefix(prefix: impl Into<Bytes>) -> RangeRequest {
        RangeRequest::new(KeyRange::prefix(prefix))
    }

    pub fn limit(mut self, limit: usize) -> RangeRequest {
        self.limit = limit;
        self
    }

    pub fn at(mut self, at: Revision) -> RangeRequest {
        self.at = Some(at);
        self
    }

    pub fn select(mut self, select: Select) -> RangeRequest {
        self.select = select;
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeResponse {
    /// The newest revision of the store when the range was read. The items are those of `RangeRequest::at`
    /// if it was given.
    pub revision: Revision,
    /// In key order.
    pub items: Vec<KeyValue>,
    /// How many keys are in the range, whatever the limit.
    pub count: u64,
    /// The limit left some keys out.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetResponse {
    /// The newest revision of the store when the key was read.
    pub revision: Revision,
    pub item: Option<KeyValue>,
}

/// The guard of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The key was last written at this revision. Revision 0 is that of an absent key, as in etcd.
    At(Revision),
    /// No guard.
    Any,
}

impl Expect {
    /// Whether the guard holds for a key last written at `current` (`None`: absent).
    pub fn holds(self, current: Option<Revision>) -> bool {
        match self {
            Expect::Absent => current.is_none(),
            Expect::At(revision) => current.unwrap_or_default() == revision,
            Expect::Any => true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// The revision of the deletion.
    pub revision: Revision,
    /// What the key held until then.
    pub previous: KeyValue,
}

/// Figures for metrics and `store stats`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStats {
    pub revision: Revision,
    /// Revisions below this one are gone.
    pub compacted: Revision,
    /// Bytes that the data takes (on disk where there is one; per endpoint the largest, for etcd).
    pub size: u64,
    /// Of `size`, what is not free for reuse.
    pub size_in_use: u64,
    /// Live keys, where the store knows without counting.
    pub keys: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_ends() {
        let cases: [(&[u8], Option<&[u8]>); 5] = [
            (b"", None),
            (b"a", Some(b"b")),
            (b"/registry/pods/", Some(b"/registry/pods0")),
            (b"a\xff", Some(b"b")),
            (b"\xff\xff", None),
        ];
        for (prefix, end) in cases {
            assert_eq!(KeyRange::prefix(prefix).end.as_deref(), end, "{prefix:?}");
        }
    }

    #[test]
    fn ranges_contain_their_keys_only() {
        let range = KeyRange::prefix("a/");
        for (key, inside) in [("a", false), ("a/", true), ("a/b", true), ("a0", false), ("b", false)] {
            assert_eq!(range.contains(key.as_bytes()), inside, "{key}");
        }
        assert!(KeyRange::key("a").contains(b"a"));
        assert!(!KeyRange::key("a").contains(b"a\0"));
        assert!(KeyRange::all().contains(b"\xff\xff"));
    }

    #[test]
    fn debug_hides_values() {
        let kv = KeyValue {
            key: "k".into(),
            value: "topsecret".into(),
            create_revision: Revision(1),
            mod_revision: Revision(1),
            stale: false,
        };
        assert!(!format!("{kv:?}").contains("topsecret"));
    }
}
