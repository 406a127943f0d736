//! The order of a merged list.
//!
//! Elements that the patch names keep the order of the patch, the others (server-only) keep that of the object, and
//! the two are interleaved so that a server-only element stays before the patch elements that it stood before.
//! Object `[a b c]`, patch `[d a]`: patch elements are `d a`, server-only ones `b c`. `d` is unknown to the object, so
//! it goes first; `a` stands before `b` in the object; the result is `[d a b c]`.

use kubelith_meta::{Str, Value};
use std::collections::{HashMap, HashSet};

/// What an element is known by: its merge key's value, or a scalar itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(Str),
}

impl Key {
    /// `None` for lists and objects, which equal nothing.
    pub(super) fn of(value: &Value) -> Option<Key> {
        Some(match value {
            Value::Null => Key::Null,
            Value::Bool(b) => Key::Bool(*b),
            Value::Int(i) => Key::Int(*i),
            Value::Float(f) => Key::Float(f.to_bits()),
            Value::String(s) => Key::Text(s.clone()),
            Value::Array(_) | Value::Object(_) | Value::Raw(_) => return None,
        })
    }

    /// The key of a list element.
    pub(super) fn of_element(element: &Value, merge_key: Option<&Str>) -> Option<Key> {
        match merge_key {
            None => Key::of(element),
            Some(name) => Key::of(element.get(name)?),
        }
    }
}

/// Where each key first stands in a list.
pub(super) struct Ranks(HashMap<Key, usize>);

impl Ranks {
    pub(super) fn of(list: &[Value], merge_key: Option<&Str>) -> Ranks {
        let mut ranks = HashMap::with_capacity(list.len());
        for (i, element) in list.iter().enumerate() {
            if let Some(key) = Key::of_element(element, merge_key) {
                ranks.entry(key).or_insert(i);
            }
        }
        Ranks(ranks)
    }

    fn of_keys(keys: Vec<Option<Key>>) -> Ranks {
        let mut ranks = HashMap::with_capacity(keys.len());
        for (i, key) in keys.into_iter().enumerate() {
            if let Some(key) = key {
                ranks.entry(key).or_insert(i);
            }
        }
        Ranks(ranks)
    }

    pub(super) fn get(&self, element: &Value, merge_key: Option<&Str>) -> Option<usize> {
        self.0.get(&Key::of_element(element, merge_key)?).copied()
    }
}

/// Beyond this many moves the order of the object before the patch has to do.
const MAX_MOVES: usize = 1_000_000;

/// The order of the object as `$setElementOrder` sees it. The reference merges in place before it looks: deletions
/// move later elements up, and new elements then fill the places that became free. So `[a b]`, with `a` deleted and
/// added anew, is in the order `[b a]`.
pub(super) fn ranks_after_merge(original: &[Value], patch: &[Value], merge_key: &Str, directive: &str) -> Ranks {
    let key_of = |v: &Value| Key::of_element(v, Some(merge_key));
    let mut places: Vec<Option<Key>> = original.iter().map(key_of).collect();
    let (deletions, added): (Vec<&Value>, Vec<&Value>) = patch.iter().partition(|v| v.get(directive).is_some());
    let mut replace = false;
    let mut len = places.len();
    if deletions.len().saturating_mul(len) > MAX_MOVES {
        return Ranks::of_keys(places);
    }
    for element in deletions {
        replace |= element.str_at(&[directive]) == "replace";
        let Some(key) = key_of(element).filter(|_| element.str_at(&[directive]) == "delete") else { continue };
        while let Some(at) = places[..len].iter().position(|p| p.as_ref() == Some(&key)) {
            // What was last stays where it was, too.
            let last = places[len - 1].clone();
            places[at..len].rotate_left(1);
            places[len - 1] = last;
            len -= 1;
        }
    }
    let size = places.len();
    let mut known: HashSet<Key> = places[..len].iter().flatten().cloned().collect();
    for key in added.into_iter().filter_map(key_of).filter(|_| !replace) {
        if known.insert(key.clone()) {
            if len < size {
                places[len] = Some(key);
            }
            len += 1;
        }
    }
    Ranks::of_keys(places)
}

struct Element {
    value: Value,
    patch: Option<usize>,
    server: Option<usize>,
}

/// Puts `merged` into order, given the order of the patch (or of `$setElementOrder`) and of the object before.
pub(super) fn arrange(merged: Vec<Value>, merge_key: Option<&Str>, patch: &Ranks, server: &Ranks) -> Vec<Value> {
    let (mut named, mut server_only): (Vec<Element>, Vec<Element>) = merged
        .into_iter()
        .map(|value| Element { patch: patch.get(&value, merge_key), server: server.get(&value, merge_key), value })
        .partition(|e| e.patch.is_some());
    named.sort_by_key(|e| e.patch);
    if server_only.iter().all(|e| e.server.is_some()) {
        server_only.sort_by_key(|e| e.server);
    } else {
        // Only with an empty $setElementOrder: new elements are in no order, and the reference's comparison then says
        // "less" both ways. Its insertion sort takes whatever comes later past them.
        for i in 1..server_only.len() {
            let mut j = i;
            while j > 0 && precedes(&server_only[j], &server_only[j - 1]) {
                server_only.swap(j, j - 1);
                j -= 1;
            }
        }
    }
    let mut result = Vec::with_capacity(named.len() + server_only.len());
    let mut named = named.into_iter().peekable();
    for element in server_only {
        while let Some(next) = named.next_if(|n| !matches!((element.server, n.server), (Some(l), Some(r)) if l < r)) {
            result.push(next.value);
        }
        result.push(element.value);
    }
    result.extend(named.map(|e| e.value));
    result
}

fn precedes(a: &Element, b: &Element) -> bool {
    match (a.server, b.server) {
        (Some(a), Some(b)) => a < b,
        _ => true,
    }
}
