//! Which objects have a label or the indexed field with some value: what is selected by that is found without looking at
//! the other objects.
//!
//! The index knows keys only, so that a change of an object that leaves its labels alone leaves the index alone. It may name
//! objects that do not match: terms are known by their hashes, and whoever asks looks at each object anyway.

use super::counted::CountedMap;
use super::object::CachedObject;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Terms of one object. Few have more than a dozen labels; those with more than this are among the candidates of every
/// search, so that no object's share of the index is larger than what it takes itself.
const MAX_TERMS: usize = 64;
/// The term of those. No other one can be it: hashes of terms have their lowest bit set.
const CROWDED: u64 = 0;
/// A search pays if it looks at this many times fewer objects than a walk: it finds each by its key.
const WORTH: usize = 4;
/// What a term and an entry take, with the nodes that they are in; for figures.
const TERM_BYTES: usize = 56;
const ENTRY_BYTES: usize = 24;

/// Something that an object has or has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term<'a> {
    Label(&'a str, &'a str),
    /// The value of the resource's indexed field; never empty.
    Indexed(&'a str),
}

/// What is sought has one of these.
pub type Clause<'a> = Vec<Term<'a>>;

#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Which of `CachedObject::fields` is indexed.
    field: Option<usize>,
    hasher: RandomState,
    terms: CountedMap<u64, Keys>,
    entries: usize,
}

/// The keys of the objects with one term. Many terms belong to one object only.
#[derive(Debug, Clone)]
enum Keys {
    One(Arc<str>),
    Many(CountedMap<Arc<str>, ()>),
}

impl Index {
    pub fn new(field: Option<usize>) -> Index {
        Index { field, ..Index::default() }
    }

    /// This index with these objects instead of those it has, in the order of their keys.
    pub fn filled<'o>(self, objects: impl Iterator<Item = &'o Arc<CachedObject>>) -> Index {
        let mut all: Vec<(u64, &Arc<str>)> = Vec::new();
        let mut terms = Vec::new();
        for object in objects {
            self.terms_of(object, &mut terms);
            all.extend(terms.iter().map(|term| (*term, &object.key)));
        }
        // Objects come in the order of their keys, which stays within a term.
        all.sort_by_key(|(term, _)| *term);
        let keys = |group: &[(u64, &Arc<str>)]| match group {
            [(_, only)] => Keys::One((*only).clone()),
            many => Keys::Many(CountedMap::from_sorted(many.iter().map(|(_, key)| ((*key).clone(), ())).collect())),
        };
        let groups = all.chunk_by(|a, b| a.0 == b.0).map(|group| (group[0].0, keys(group)));
        let terms = CountedMap::from_sorted(groups.collect());
        Index { entries: all.len(), terms, ..self }
    }

    /// Follows a change of an object.
    pub fn follow(&mut self, key: &Arc<str>, before: Option<&CachedObject>, now: Option<&CachedObject>) {
        if let (Some(before), Some(now)) = (before, now)
            && before.labels == now.labels
            && self.indexed(before) == self.indexed(now)
        {
            return;
        }
        let (mut old, mut new) = (Vec::new(), Vec::new());
        before.into_iter().for_each(|object| self.terms_of(object, &mut old));
        now.into_iter().for_each(|object| self.terms_of(object, &mut new));
        for term in old.iter().filter(|term| new.binary_search(term).is_err()) {
            self.remove(*term, key);
        }
        for term in new.iter().filter(|term| old.binary_search(term).is_err()) {
            self.add(*term, key.clone());
        }
    }

    /// The keys among which are all objects with a key that begins with `prefix` and is `from` or greater, and one term of
    /// each clause; sorted. `None` if there is not much that needs not be looked at, of so many in all.
    pub fn candidates(&self, prefix: &str, from: &str, clauses: &[Clause<'_>], in_all: usize) -> Option<Vec<Arc<str>>> {
        let found = clauses.iter().map(|clause| {
            let keys: Vec<&Keys> = clause.iter().filter_map(|term| self.terms.get(&self.hash(*term))).collect();
            (keys.iter().map(|keys| keys.count(prefix)).sum::<usize>(), keys)
        });
        let (count, mut lists) = found.min_by_key(|(count, _)| *count)?;
        let crowded = self.terms.get(&CROWDED);
        if (count + crowded.map_or(0, |keys| keys.count(prefix))).saturating_mul(WORTH) > in_all {
            return None;
        }
        lists.extend(crowded);
        let mut keys = Vec::with_capacity(count);
        let start = from.max(prefix);
        for list in &lists {
            list.collect(prefix, start, &mut keys);
        }
        if lists.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        Some(keys)
    }

    /// What it takes, roughly.
    pub fn bytes(&self) -> usize {
        self.terms.len() * TERM_BYTES + self.entries * ENTRY_BYTES
    }

    fn hash(&self, term: Term<'_>) -> u64 {
        self.hasher.hash_one(term) | 1
    }

    fn indexed<'o>(&self, object: &'o CachedObject) -> &'o str {
        self.field.and_then(|field| object.fields.get(field)).map_or("", |value| value.as_str())
    }

    /// The terms of an object, sorted, each once.
    fn terms_of(&self, object: &CachedObject, terms: &mut Vec<u64>) {
        terms.clear();
        if object.labels.len() > MAX_TERMS {
            terms.push(CROWDED);
        } else {
            terms.extend(object.labels.iter().map(|(key, value)| self.hash(Term::Label(key, value))));
        }
        let indexed = self.indexed(object);
        if !indexed.is_empty() {
            terms.push(self.hash(Term::Indexed(indexed)));
        }
        terms.sort_unstable();
        terms.dedup();
    }

    fn add(&mut self, term: u64, key: Arc<str>) {
        self.entries += 1;
        let Some(known) = self.terms.get_mut(&term) else {
            self.terms.insert(term, Keys::One(key));
            return;
        };
        if let Keys::One(first) = known {
            *known = Keys::Many(std::iter::once((first.clone(), ())).collect());
        }
        if let Keys::Many(keys) = known {
            keys.insert(key, ());
        }
    }

    fn remove(&mut self, term: u64, key: &Arc<str>) {
        self.entries -= 1;
        let is_empty = match self.terms.get_mut(&term) {
            Some(Keys::Many(keys)) => {
                keys.remove(&**key);
                keys.is_empty()
            }
            Some(Keys::One(_)) | None => true,
        };
        if is_empty {
            self.terms.remove(&term);
        }
    }
}

impl Keys {
    fn count(&self, prefix: &str) -> usize {
        match self {
            Keys::One(key) => usize::from(key.starts_with(prefix)),
            Keys::Many(keys) => keys.ranks_below(prefix).len(),
        }
    }

    fn collect(&self, prefix: &str, start: &str, into: &mut Vec<Arc<str>>) {
        match self {
            Keys::One(key) => into.extend(Some(key).filter(|key| key.starts_with(prefix) && &***key >= start).cloned()),
            Keys::Many(keys) => {
                into.extend(keys.from(start).map(|(key, ())| key).take_while(|key| key.starts_with(prefix)).cloned());
            }
        }
    }
}
