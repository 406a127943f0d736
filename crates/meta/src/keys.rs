//! The keys of objects, and comparing them. They are short, and a call of the C library's `memcmp` takes longer than
//! looking at eight bytes at a time.

use crate::Str;
use std::cmp::Ordering;
use std::ops::Deref;

/// The first eight bytes of a key as a number, with zeros behind the end of a shorter one. Keys are in the order of their
/// heads, and few keys of an object have the same one: a search compares numbers, which lie where they are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Head(u64);

/// How a key goes on behind its head: how long it is, and the last eight bytes if there are as many. Only keys of more than
/// sixteen bytes have more to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    last: [u8; 8],
    len: usize,
}

/// A key of an object.
#[derive(Debug, Clone, Eq, Default)]
pub struct Key {
    head: Head,
    text: Str,
}

impl Head {
    /// Of a literal it is known when that is compiled.
    #[inline(always)]
    pub fn of(key: &str) -> Head {
        let bytes = key.as_bytes();
        if let Some(first) = bytes.first_chunk::<8>() {
            return Head(u64::from_be_bytes(*first));
        }
        // Bytes that are taken twice are put in the same place.
        let place = |byte: u8, at: usize| u64::from(byte) << (56 - 8 * at);
        Head(match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
            (Some(first), Some(last), _) => {
                let last = u64::from(u32::from_be_bytes(*last)) << (8 * (8 - bytes.len()));
                u64::from(u32::from_be_bytes(*first)) << 32 | last
            }
            (_, _, [first, .., last]) => {
                let middle = bytes.len() / 2;
                place(*first, 0) | place(bytes[middle], middle) | place(*last, bytes.len() - 1)
            }
            (_, _, [only]) => place(*only, 0),
            _ => 0,
        })
    }
}

impl Tail {
    #[inline]
    pub fn of(key: &str) -> Tail {
        let bytes = key.as_bytes();
        Tail { last: bytes.last_chunk().copied().unwrap_or_default(), len: bytes.len() }
    }

    /// Whether this is the tail of `key`. Both have the same head; `text` gives the text of the key that this is of, which
    /// is needed for long ones only.
    #[inline]
    pub fn is_of<'t>(&self, key: &str, text: impl FnOnce() -> &'t str) -> bool {
        let bytes = key.as_bytes();
        self.len == bytes.len()
            && (self.len <= 8 || (bytes.last_chunk() == Some(&self.last) && (self.len <= SHORT || text() == key)))
    }
}

impl Key {
    #[inline]
    pub fn new(text: Str) -> Key {
        Key { head: Head::of(&text), text }
    }

    /// A key whose head is known.
    #[inline]
    pub fn with_head(head: Head, text: Str) -> Key {
        debug_assert_eq!(head, Head::of(&text));
        Key { head, text }
    }

    #[inline]
    pub fn head(&self) -> Head {
        self.head
    }

    #[inline]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    #[inline]
    pub fn into_text(self) -> Str {
        self.text
    }

    /// Whether this is the key `key` with the head `head`.
    #[inline]
    pub fn is(&self, head: Head, key: &str) -> bool {
        self.head == head && same_behind_head(&self.text, key)
    }

    /// The order of this key and `key` with the head `head`.
    #[inline]
    pub fn order(&self, head: Head, key: &str) -> Ordering {
        self.head.cmp(&head).then_with(|| self.text.as_bytes().cmp(key.as_bytes()))
    }
}

impl Deref for Key {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<Str> for Key {
    #[inline]
    fn from(text: Str) -> Key {
        Key::new(text)
    }
}

impl From<&str> for Key {
    #[inline]
    fn from(text: &str) -> Key {
        Key::new(Str::from(text))
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Key) -> bool {
        self.is(other.head, &other.text)
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        self.order(other.head, &other.text)
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether two keys with the same head are the same.
#[inline]
pub fn same_behind_head(a: &str, b: &str) -> bool {
    same_short(a, b) || (a.len() > SHORT && a == b)
}

/// Longer keys take a call to compare.
const SHORT: usize = 16;

/// Whether two keys with the same head are short and the same.
#[inline]
pub(crate) fn same_short(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.len() == b.len() && (a.len() <= 8 || (a.len() <= SHORT && a.last_chunk::<8>() == b.last_chunk::<8>()))
}

/// Whether two keys are the same.
#[inline]
pub fn same(a: &str, b: &str) -> bool {
    same_bytes(a.as_bytes(), b.as_bytes())
}

/// The same of bytes.
#[inline]
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        // The first and the last bytes overlap in the middle.
        8..=16 => a.first_chunk::<8>() == b.first_chunk::<8>() && a.last_chunk::<8>() == b.last_chunk::<8>(),
        4..=7 => a.first_chunk::<4>() == b.first_chunk::<4>() && a.last_chunk::<4>() == b.last_chunk::<4>(),
        _ => a == b,
    }
}

/// The order of two keys, by their bytes.
#[inline]
pub fn order(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(x), Some(y)) if x != y => return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y)),
        (Some(_), Some(_)) => return a[8..].cmp(&b[8..]),
        _ => {}
    }
    match (a.first_chunk::<4>(), b.first_chunk::<4>()) {
        (Some(x), Some(y)) if x != y => u32::from_be_bytes(*x).cmp(&u32::from_be_bytes(*y)),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_as_strings_do() {
        let alphabet =
            ["", "a", "ab", "abc", "abcd", "abce", "bbcd", "abcdefgh", "abcdefgi", "bbcdefgh", "ü", "\u{10000}"];
        let mut keys: Vec<String> = Vec::new();
        for a in alphabet {
            for b in alphabet {
                keys.push(format!("{a}{b}"));
                keys.push(format!("{b}0123456789{a}"));
                keys.push(format!("{a}\0{b}"));
                keys.push(format!("{a}\0\0\0{b}"));
            }
        }
        for a in &keys {
            for b in &keys {
                assert_eq!((same(a, b), order(a, b)), (a == b, a.cmp(b)), "{a} {b}");
                let (key, head) = (Key::from(a.as_str()), Head::of(b));
                assert_eq!((key.is(head, b), key.order(head, b)), (a == b, a.cmp(b)), "{a} {b}");
                if Head::of(a) == head {
                    assert_eq!(Tail::of(a).is_of(b, || a), a == b, "{a} {b}");
                }
                assert_eq!(key.cmp(&Key::from(b.as_str())), a.cmp(b), "{a} {b}");
            }
        }
    }
}
