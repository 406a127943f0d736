//! Which keys of an object have been seen, without a set for the objects that API clients send.

use kubelith_meta::{Key, Str, Value};
use std::collections::HashSet;

/// Objects up to this size are searched key by key.
const SMALL: usize = 16;

/// Notices repeated keys of one object. Keys in ascending order (what every Go client sends for maps) cost
/// one comparison each.
#[derive(Default)]
pub(crate) struct SeenKeys {
    /// Set once a large object turned out not to be sorted.
    set: Option<HashSet<Str>>,
    unsorted: bool,
}

impl SeenKeys {
    /// True if `key` is among `members`, which are all the members so far.
    pub fn repeats(&mut self, members: &[(Key, Value)], key: &str) -> bool {
        if let Some(set) = &mut self.set {
            return !set.insert(Str::from(key));
        }
        let Some((last, _)) = members.last() else { return false };
        if !self.unsorted {
            if last.as_str() < key {
                return false;
            }
            self.unsorted = true;
            return members.binary_search_by(|(k, _)| k.as_str().cmp(key)).is_ok();
        }
        if members.len() <= SMALL {
            return members.iter().any(|(k, _)| k.as_str() == key);
        }
        let mut set: HashSet<Str> = members.iter().map(|(k, _)| Str::from(k.as_str())).collect();
        let repeats = !set.insert(Str::from(key));
        self.set = Some(set);
        repeats
    }
}
