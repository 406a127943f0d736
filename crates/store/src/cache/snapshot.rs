//! An immutable view of a resource, and how objects are found in it.

use super::counted::CountedMap;
use super::index::{Clause, Index};
use super::object::CachedObject;
use std::sync::Arc;

pub type Objects = CountedMap<Arc<str>, Arc<CachedObject>>;

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub objects: Objects,
    pub revision: i64,
    pub odd: Oddities,
    /// What a later state of the objects is found by, if there is an index of it.
    pub(super) index: Option<Index>,
    /// Keys of the objects that are others in that state, in any order.
    pub(super) changed: Vec<Arc<str>>,
}

/// How many of a resource's objects are not as most are. There may be fewer, but 0 is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Cannot be read.
    pub broken: usize,
    /// Are in another version than the one in which objects of the resource are cached.
    pub foreign: usize,
}

impl Oddities {
    pub fn add(&mut self, object: &CachedObject) {
        self.broken += usize::from(object.broken.is_some());
        self.foreign += usize::from(object.is_foreign);
    }

    pub(super) fn remove(&mut self, object: &CachedObject) {
        self.broken -= usize::from(object.broken.is_some());
        self.foreign -= usize::from(object.is_foreign);
    }
}

impl Snapshot {
    /// Without an index: what is selected is found by looking at all objects.
    pub fn new(objects: Objects, revision: i64, odd: Oddities) -> Snapshot {
        Snapshot { objects, revision, odd, index: None, changed: Vec::new() }
    }

    /// Objects whose key starts with `prefix` and is greater than `after`, in key order.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> + use<'a> {
        let after = after.filter(|after| *after >= prefix);
        let mut found = self.objects.from(after.unwrap_or(prefix)).peekable();
        found.next_if(|(key, _)| Some(&***key) == after);
        found.take_while(move |(key, _)| key.starts_with(prefix)).map(|(_, object)| object)
    }

    /// Objects whose key starts with `prefix` and is `from` or greater, in key order.
    pub fn range_from<'a>(
        &'a self,
        prefix: &'a str,
        from: Option<&str>,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> + use<'a> {
        let found = self.objects.from(from.filter(|from| *from >= prefix).unwrap_or(prefix));
        found.take_while(move |(key, _)| key.starts_with(prefix)).map(|(_, object)| object)
    }

    /// How many objects [`Snapshot::range_from`] has. They are not looked at.
    pub fn count_from(&self, prefix: &str, from: Option<&str>) -> usize {
        let places = self.objects.ranks_below(prefix);
        let start = from.filter(|from| *from >= prefix).map_or(places.start, |from| self.objects.rank(from));
        places.end.saturating_sub(start)
    }

    pub fn get(&self, key: &str) -> Option<&Arc<CachedObject>> {
        self.objects.get(key)
    }

    /// Objects among which are all that [`Snapshot::range_from`] has and that have one term of each clause, in key order.
    /// `None` if no index leads to much fewer objects.
    pub fn candidates(
        &self,
        prefix: &str,
        from: Option<&str>,
        clauses: &[Clause<'_>],
    ) -> Option<Vec<Arc<CachedObject>>> {
        let (index, from) = (self.index.as_ref()?, from.unwrap_or_default());
        let in_all = self.objects.ranks_below(prefix).len();
        let mut keys = index.candidates(prefix, from, clauses, in_all)?;
        if !self.changed.is_empty() {
            keys.extend(self.changed.iter().filter(|key| key.starts_with(prefix) && &***key >= from).cloned());
            keys.sort_unstable();
            keys.dedup();
        }
        Some(keys.iter().filter_map(|key| self.objects.get(&**key)).cloned().collect())
    }

    /// The objects of this name in all namespaces whose key is `from` or greater, in key order. Each namespace is looked
    /// at once, however much is in it.
    pub fn named(&self, name: &str, from: Option<&str>) -> Vec<Arc<CachedObject>> {
        let mut found = Vec::new();
        let mut next = from.unwrap_or_default().to_owned();
        // Where it begins within a namespace, what is sought there may be before.
        while let Some((key, _)) = self.objects.from(next.as_str()).next() {
            let namespace = key.split_once('/').map_or(&**key, |(namespace, _)| namespace);
            let sought = [namespace, "/", name].concat();
            found.extend(self.objects.get(sought.as_str()).filter(|_| sought >= next).cloned());
            // Behind everything that begins with the namespace and a slash.
            next = [namespace, "0"].concat();
        }
        found
    }
}
