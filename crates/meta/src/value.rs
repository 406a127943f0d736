//! The value tree that requests are decoded into and changed as. Reads never build one.
//!
//! Objects keep their keys sorted: lookups are binary searches, merges are linear walks, and encoding is
//! deterministic (kube-apiserver writes custom resources to etcd with sorted keys, too).

use crate::keys::{self, Head, Key};
use crate::sealed::{ReadEntries, Sealed};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// How deep objects are sealed. Deeper down there is little to be won.
const SEALED_DEPTH: usize = 8;
/// Smaller objects are copied faster than they are sealed.
const SEALED_SIZE: usize = 8;

/// A string that needs no allocation up to 24 bytes: nearly every key and most values of API objects.
pub type Str = compact_str::CompactString;

/// A JSON value. Numbers are 64-bit integers where they are written as such and fit, else doubles,
/// which is how Kubernetes reads JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Str),
    Array(Vec<Value>),
    Object(Map),
    /// An object or null as compact JSON text, for what is stored and shown but not looked into: `fieldsV1` of
    /// managedFields, which is nearly half of a pod. It is shared, so copies are free.
    Raw(Arc<str>),
}

/// Which objects are sealed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seal {
    All,
    /// Those with nothing empty in them: no null, no empty list or object.
    Full,
}

/// A JSON object: entries sorted by key, each key once.
///
/// # The seal
///
/// An object can be sealed. That means two things, and every pass over objects may rely on both:
///
/// - **It is finished where it stands.** It was decoded by its type, has its defaults and is in canonical form: it came from the
///   store, or is what the store will hold. Decoding, defaults and canonical form pass over it.
/// - **Its entries do not change.** Copies share them, which costs nothing, and two objects with the very same entries
///   ([`Map::shares_with`]) need not be compared.
///
/// Whoever changes a sealed object breaks its seal and those of the objects around it, since it reaches them through
/// `&mut`. A part that goes to another place, where another type holds, must be [unsealed](Value::unseal) first. Only
/// [`Value::seal`] and its siblings set seals; debug builds compare what passes skipped with what they would have done.
///
/// A sealed object may still be [text](Map::of_text), which is read when somebody looks into it. Passes that skip what is sealed
/// never do, and who writes it again copies the text. It may also be [judged](Map::is_judged): rules that found nothing wrong with
/// it need not look again.
#[derive(Clone)]
pub struct Map {
    entries: Entries,
}

#[derive(Clone)]
enum Entries {
    Own(Vec<(Key, Value)>),
    Shared(Arc<Sealed>),
}

impl Value {
    pub fn object() -> Value {
        Value::Object(Map::new())
    }

    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(b) = self { Some(*b) } else { None }
    }

    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        if let Value::Int(i) = self { Some(*i) } else { None }
    }

    /// Any number as a double.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(*i as f64),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(s) = self { Some(s) } else { None }
    }

    #[inline]
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(a) = self { Some(a) } else { None }
    }

    #[inline]
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Value::Array(a) = self { Some(a) } else { None }
    }

    #[inline]
    pub fn as_object(&self) -> Option<&Map> {
        if let Value::Object(m) = self { Some(m) } else { None }
    }

    #[inline]
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        if let Value::Object(m) = self { Some(m) } else { None }
    }

    /// The member `key` of an object; `None` for anything else.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    #[inline]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(key)
    }

    /// Follows object members: `v.at(&["spec", "nodeName"])`.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |v, key| v.get(key))
    }

    pub fn at_mut(&mut self, path: &[&str]) -> Option<&mut Value> {
        path.iter().try_fold(self, |v, key| v.get_mut(key))
    }

    /// Whether the member `key` of both is the very same object, so that nothing in it need be compared.
    pub fn shares(&self, key: &str, other: &Value) -> bool {
        match (self.get(key), other.get(key)) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => a.shares_with(b),
            _ => false,
        }
    }

    /// A string member reached by `path`, or `""`.
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or("")
    }

    /// Sets the member reached by `path`, making objects on the way. A value on the way that is not an
    /// object is replaced by one.
    pub fn set_at(&mut self, path: &[&str], value: Value) {
        let mut v = self;
        for key in path {
            v = v.make_object().entry_or_null(key);
        }
        *v = value;
    }

    /// Removes the member reached by `path`.
    pub fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        self.at_mut(parents)?.as_object_mut()?.remove(last)
    }

    /// Sets the member reached by `path`, or removes it.
    pub fn put_at(&mut self, path: &[&str], value: Option<Value>) {
        match value {
            Some(value) => self.set_at(path, value),
            None => drop(self.remove_at(path)),
        }
    }

    /// Makes the member reached by `path` what it is in `other`: absent if it is absent there.
    pub fn copy_at(&mut self, path: &[&str], other: &Value) {
        self.put_at(path, other.at(path).cloned());
    }

    /// This value as an object, replaced by an empty one if it is not.
    pub fn make_object(&mut self) -> &mut Map {
        if !matches!(self, Value::Object(_)) {
            *self = Value::object();
        }
        match self {
            Value::Object(m) => m,
            _ => unreachable!("just made an object"),
        }
    }

    /// [Seals](Map) the larger objects inside of this one, which is finished.
    pub fn seal(&mut self) {
        self.seal_parts(Seal::All);
    }

    /// As [`Value::seal`], but for objects with something empty in them, whose canonical form the store decides.
    pub fn seal_full(&mut self) {
        self.seal_parts(Seal::Full);
    }

    fn seal_parts(&mut self, which: Seal) {
        if let Value::Object(map) = self {
            for (_, member) in map.own() {
                member.seal_below(which, SEALED_DEPTH);
            }
        }
    }

    /// How many values there are in this one and, up to a depth, below it. `None` if there are empty ones and that counts.
    fn seal_below(&mut self, which: Seal, depth: usize) -> Option<usize> {
        match self {
            Value::Object(map) if map.is_sealed() => Some(SEALED_SIZE),
            Value::Object(map) if depth > 0 && !map.is_empty() => {
                let members = map.own().iter_mut().map(|(_, v)| v.seal_below(which, depth - 1));
                let size = whole(members)?;
                if size >= SEALED_SIZE {
                    map.seal();
                }
                Some(size)
            }
            Value::Array(list) if depth > 0 && !list.is_empty() => {
                whole(list.iter_mut().map(|v| v.seal_element(which, depth - 1)))
            }
            _ if which == Seal::All => Some(1),
            Value::Object(_) | Value::Array(_) | Value::Null => None,
            _ => Some(1),
        }
    }

    /// As `seal_below`, for an element of a list. A large one, as containers are, mostly stays as it is or changes in most
    /// of its parts, so these are not looked at.
    fn seal_element(&mut self, which: Seal, depth: usize) -> Option<usize> {
        match self {
            Value::Object(map) if which == Seal::All && !map.is_sealed() && map.len() >= SEALED_SIZE => {
                map.seal();
                Some(SEALED_SIZE)
            }
            other => other.seal_below(which, depth),
        }
    }

    /// Breaks every seal inside of this one: what holds of sealed objects need not hold where parts of this value go.
    pub fn unseal(&mut self) {
        match self {
            Value::Object(map) => map.own().iter_mut().for_each(|(_, member)| member.unseal()),
            Value::Array(list) => list.iter_mut().for_each(Value::unseal),
            _ => {}
        }
    }

    /// True for null, false, 0, "", [] and {}: what Go's `omitempty` leaves out.
    pub fn is_empty(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(b) => !b,
            Value::Int(i) => *i == 0,
            Value::Float(f) => *f == 0.0,
            Value::String(s) => s.is_empty(),
            Value::Array(a) => a.is_empty(),
            Value::Object(m) => m.is_empty(),
            Value::Raw(text) => matches!(&**text, "{}" | "null"),
        }
    }
}

/// The size of a container, given those of what is in it. All are asked for, whatever one says.
fn whole(parts: impl Iterator<Item = Option<usize>>) -> Option<usize> {
    let mut size = Some(1);
    for part in parts {
        size = size.zip(part).map(|(size, part)| size + part);
    }
    size
}

impl Map {
    #[inline]
    pub const fn new() -> Map {
        Map { entries: Entries::Own(Vec::new()) }
    }

    pub fn with_capacity(n: usize) -> Map {
        Map { entries: Entries::Own(Vec::with_capacity(n)) }
    }

    /// A sealed object that is read when it is asked for. `text` is its JSON as this program writes it, and it is not empty.
    pub fn of_text(text: Bytes, read: ReadEntries) -> Map {
        Map { entries: Entries::Shared(Arc::new(Sealed::of_text(text, read))) }
    }

    /// The JSON of this object, if it was read from one and nobody changed it since.
    #[inline]
    pub fn text(&self) -> Option<&Bytes> {
        match &self.entries {
            Entries::Own(_) => None,
            Entries::Shared(sealed) => sealed.text(),
        }
    }

    /// The JSON of this object, if nobody has looked into it yet: to read it is more work than to copy or to convert its text.
    #[inline]
    pub fn unread(&self) -> Option<&Bytes> {
        match &self.entries {
            Entries::Shared(sealed) if sealed.is_unread() => sealed.text(),
            _ => None,
        }
    }

    /// Whether this object is sealed, and this process has seen that it obeys all rules where it stands.
    pub fn is_judged(&self) -> bool {
        matches!(&self.entries, Entries::Shared(sealed) if sealed.is_judged())
    }

    /// Keeps in mind that it obeys all rules, if it is sealed.
    pub fn mark_judged(&self) {
        if let Entries::Shared(sealed) = &self.entries {
            sealed.mark_judged();
        }
    }

    /// Makes room for `more` members.
    pub fn reserve(&mut self, more: usize) {
        self.own().reserve(more);
    }

    /// The entries in key order.
    #[inline]
    pub fn entries(&self) -> &[(Key, Value)] {
        match &self.entries {
            Entries::Own(entries) => entries,
            Entries::Shared(sealed) => sealed.entries(),
        }
    }

    /// The entries to be changed: breaks the seal.
    #[inline]
    fn own(&mut self) -> &mut Vec<(Key, Value)> {
        if let Entries::Shared(_) = self.entries {
            self.unseal();
        }
        match &mut self.entries {
            Entries::Own(entries) => entries,
            Entries::Shared(_) => unreachable!("just made its own"),
        }
    }

    /// Seals this object, which is finished.
    pub fn seal(&mut self) {
        let entries = std::mem::take(self.own());
        self.entries = Entries::Shared(Arc::new(Sealed::from(entries)));
    }

    #[cold]
    fn unseal(&mut self) {
        self.entries = Entries::Own(std::mem::take(self).into_own());
    }

    /// The entries, which are taken if nobody else has them.
    pub fn into_own(self) -> Vec<(Key, Value)> {
        match self.entries {
            Entries::Own(entries) => entries,
            Entries::Shared(sealed) => {
                Arc::try_unwrap(sealed).map_or_else(|shared| shared.entries().clone(), Sealed::into_entries)
            }
        }
    }

    /// Whether this object is finished where it stands.
    #[inline]
    pub fn is_sealed(&self) -> bool {
        matches!(self.entries, Entries::Shared(_))
    }

    /// Whether two objects have the very same entries, so that nothing in them need be compared.
    #[inline]
    pub fn shares_with(&self, other: &Map) -> bool {
        match (&self.entries, &other.entries) {
            (Entries::Shared(a), Entries::Shared(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.entries {
            Entries::Own(entries) => entries.is_empty(),
            Entries::Shared(sealed) => !sealed.is_unread() && sealed.entries().is_empty(),
        }
    }

    fn find(&self, head: Head, key: &str) -> Result<usize, usize> {
        self.entries().binary_search_by(|(k, _)| k.order(head, key))
    }

    /// Where `key` is. In a small object mostly the head tells, and what it does not tell is left to a search.
    #[inline(always)]
    fn position(&self, head: Head, key: &str) -> Option<usize> {
        const SMALL: usize = 16;
        let entries = self.entries();
        if entries.len() > SMALL {
            return self.search(head, key);
        }
        let mut at = 0;
        while at < entries.len() {
            let (found, _) = &entries[at];
            if found.head() >= head {
                return match found.head() == head {
                    true if keys::same_short(found, key) => Some(at),
                    true => self.search_from(at, head, key),
                    false => None,
                };
            }
            at += 1;
        }
        None
    }

    #[inline(never)]
    fn search(&self, head: Head, key: &str) -> Option<usize> {
        self.find(head, key).ok()
    }

    /// Where `key` is among the few with its head, which begin at `first`.
    #[inline(never)]
    fn search_from(&self, first: usize, head: Head, key: &str) -> Option<usize> {
        let twins = self.entries()[first..].iter().take_while(|(k, _)| k.head() == head);
        twins.into_iter().position(|(k, _)| **k == *key).map(|at| first + at)
    }

    #[inline]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.get_with(Head::of(key), key)
    }

    /// As `get`, with the head of `key`.
    pub fn get_with(&self, head: Head, key: &str) -> Option<&Value> {
        self.position(head, key).map(|i| &self.entries()[i].1)
    }

    #[inline]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.get_mut_with(Head::of(key), key)
    }

    /// As `get_mut`, with the head of `key`.
    pub fn get_mut_with(&mut self, head: Head, key: &str) -> Option<&mut Value> {
        self.position(head, key).map(|i| &mut self.own()[i].1)
    }

    /// The member `key`, made null first if it is absent.
    pub fn entry_or_null(&mut self, key: &str) -> &mut Value {
        let head = Head::of(key);
        let i = match self.find(head, key) {
            Ok(i) => i,
            Err(i) => {
                self.own().insert(i, (Key::with_head(head, Str::from(key)), Value::Null));
                i
            }
        };
        &mut self.own()[i].1
    }

    /// Sets a member and returns what was there. Appending in key order costs no search beyond one comparison.
    pub fn insert(&mut self, key: impl Into<Str>, value: impl Into<Value>) -> Option<Value> {
        self.insert_at(Key::new(key.into()), value.into())
    }

    /// As `insert`, of a key whose head is known.
    pub fn insert_at(&mut self, key: Key, value: Value) -> Option<Value> {
        if self.entries().last().is_none_or(|(last, _)| *last < key) {
            self.own().push((key, value));
            return None;
        }
        match self.find(key.head(), &key) {
            Ok(i) => Some(std::mem::replace(&mut self.own()[i].1, value)),
            Err(i) => {
                self.own().insert(i, (key, value));
                None
            }
        }
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(Head::of(key), key).map(|i| self.own().remove(i).1)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.retain_keys(|key, value| keep(key, value));
    }

    /// As `retain`, for those who look for keys by their heads.
    pub fn retain_keys(&mut self, mut keep: impl FnMut(&Key, &mut Value) -> bool) {
        self.own().retain_mut(|(key, value)| keep(key, value));
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + ExactSizeIterator {
        self.entries().iter().map(|(k, v)| (k.as_str(), v))
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&str, &mut Value)> + ExactSizeIterator {
        self.own().iter_mut().map(|(k, v)| (k.as_str(), v))
    }

    /// The entries in key order, whose values may change.
    #[inline]
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Value)> {
        self.own().iter_mut().map(|(key, value)| (&*key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.entries().iter().map(|(k, _)| k.as_str())
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.entries().iter().map(|(_, v)| v)
    }

    /// The entry at `index` in key order.
    pub fn at(&self, index: usize) -> Option<(&str, &Value)> {
        self.entries().get(index).map(|(k, v)| (k.as_str(), v))
    }

    /// Makes an object of entries in any order; a later duplicate wins, as in Go's decoder.
    pub fn from_unsorted(mut entries: Vec<(Key, Value)>) -> Map {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            // Stable sort keeps duplicates in their order; keep the last of each run.
            entries.reverse();
            entries.dedup_by(|a, b| a.0 == b.0);
            entries.reverse();
        }
        Map { entries: Entries::Own(entries) }
    }
}

impl Default for Map {
    fn default() -> Map {
        Map::new()
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Map) -> bool {
        let same_text = || self.text().zip(other.text()).is_some_and(|(a, b)| a == b);
        self.shares_with(other) || same_text() || self.entries() == other.entries()
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The entries of an object that is taken apart, in key order.
pub struct IntoEntries(std::vec::IntoIter<(Key, Value)>);

impl Iterator for IntoEntries {
    type Item = (Str, Value);

    #[inline]
    fn next(&mut self) -> Option<(Str, Value)> {
        self.0.next().map(|(key, value)| (key.into_text(), value))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for IntoEntries {}

impl IntoIterator for Map {
    type Item = (Str, Value);
    type IntoIter = IntoEntries;

    fn into_iter(self) -> IntoEntries {
        IntoEntries(self.into_own().into_iter())
    }
}

impl<K: Into<Str>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Map {
        Map::from_unsorted(iter.into_iter().map(|(k, v)| (Key::new(k.into()), v.into())).collect())
    }
}

impl<K: Into<Str>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Value {
    fn from(entries: [(K, V); N]) -> Value {
        Value::Object(entries.into_iter().collect())
    }
}

macro_rules! value_from {
    ($($from:ty, $v:ident => $to:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($v: $from) -> Value {
                $to
            }
        })*
    };
}

value_from! {
    bool, v => Value::Bool(v);
    i32, v => Value::Int(v.into());
    i64, v => Value::Int(v);
    u32, v => Value::Int(v.into());
    f64, v => Value::Float(v);
    &str, v => Value::String(v.into());
    &String, v => Value::String(v.into());
    String, v => Value::String(v.into());
    Str, v => Value::String(v);
    Map, v => Value::Object(v);
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(v: Vec<T>) -> Value {
        Value::Array(v.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_the_last_duplicate_wins() {
        let m: Map = [("b", 1i64), ("a", 2), ("b", 3)].into_iter().collect();
        assert_eq!(m.iter().map(|(k, v)| (k, v.as_i64().unwrap())).collect::<Vec<_>>(), [("a", 2), ("b", 3)]);
    }

    #[test]
    fn keys_that_begin_alike_are_told_apart() {
        let names: Vec<String> = (0..40).flat_map(|i| [format!("app.kubernetes.io/{i}"), format!("app{i}")]).collect();
        let mut map: Map = names.iter().step_by(2).map(|name| (name.as_str(), name.as_str())).collect();
        for name in &names[..40] {
            map.insert(name.as_str(), name.as_str());
            map.entry_or_null(name);
        }
        assert!(map.entries().is_sorted_by(|a, b| a.0.as_str() < b.0.as_str()));
        for (i, name) in names.iter().enumerate() {
            let want = (i < 40 || i % 2 == 0).then_some(name.as_str());
            assert_eq!(map.get(name).and_then(Value::as_str), want, "{name}");
            assert_eq!(map.remove(name).is_some(), want.is_some(), "{name}");
            assert!(!map.contains_key(name));
        }
        assert!(map.is_empty());
    }

    #[test]
    fn set_at_makes_the_way() {
        let mut v = Value::Null;
        v.set_at(&["spec", "replicas"], 3i64.into());
        assert_eq!(v.at(&["spec", "replicas"]), Some(&Value::Int(3)));
        assert_eq!(v.remove_at(&["spec", "replicas"]), Some(Value::Int(3)));
        assert_eq!(v.at(&["spec", "replicas"]), None);
    }

    #[test]
    fn shared_objects_are_copied_when_they_change() {
        let large = |n: i64| Value::from([("list", Value::from((0..n).collect::<Vec<_>>())), ("name", "x".into())]);
        let mut object = Value::from([("a", large(9)), ("b", large(9)), ("c", Value::from(vec![large(9), large(1)]))]);
        let original = object.clone();
        object.seal();
        assert_eq!(object, original);
        let shared = |v: &Value, w: &Value, path: &[&str]| {
            v.at(path).and_then(Value::as_object).unwrap().shares_with(w.at(path).and_then(Value::as_object).unwrap())
        };
        let mut copy = object.clone();
        assert!(shared(&copy, &object, &["a"]) && shared(&copy, &object, &["b"]));
        copy.set_at(&["b", "name"], "y".into());
        assert_eq!((object.str_at(&["b", "name"]), copy.str_at(&["b", "name"])), ("x", "y"));
        assert!(shared(&copy, &object, &["a"]) && !shared(&copy, &object, &["b"]));
        assert!(copy != object && object == original);
        let elements = |v: &Value| v.at(&["c"]).and_then(Value::as_array).unwrap().to_vec();
        let is_sealed: Vec<bool> = elements(&copy).iter().map(|v| v.as_object().is_some_and(Map::is_sealed)).collect();
        assert_eq!(is_sealed, [true, false]);
        // A large element is shared as a whole.
        let members = (0..8).map(|i| (Str::from(format!("m{i}")), large(9)));
        let mut list = Value::from([("list", Value::Array(vec![Value::Object(members.collect())]))]);
        list.seal();
        let element = &list.get("list").unwrap().items()[0];
        let is_sealed = |v: Option<&Value>| v.and_then(Value::as_object).unwrap().is_sealed();
        assert_eq!((is_sealed(Some(element)), is_sealed(element.get("m0"))), (true, false));
        // What has something empty in it is left as it is on demand, and what is around that.
        let mut partly = original.clone();
        partly.set_at(&["b", "none"], Value::object());
        partly.seal_full();
        let is_sealed = |key: &str| partly.get(key).and_then(Value::as_object).unwrap().is_sealed();
        assert_eq!((is_sealed("a"), is_sealed("b")), (true, false));
        // The last one to hold entries takes them.
        drop(object);
        assert_eq!(copy.as_object_mut().unwrap().remove("a"), original.get("a").cloned());
        copy.set_at(&["b", "name"], "x".into());
        let mut unshared = copy.clone();
        unshared.unseal();
        assert_eq!(unshared, copy);
        assert!(!unshared.at(&["c"]).and_then(Value::as_array).unwrap()[0].as_object().unwrap().is_sealed());
        let taken = copy.get("c").and_then(Value::as_array).unwrap()[0].clone();
        let Value::Object(taken) = taken else { panic!("an object") };
        assert_eq!(taken.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), ["list", "name"]);
    }

    #[test]
    fn what_was_judged_is_so_as_long_as_nobody_changes_it() {
        let object = || Value::from([("spec", Value::from([("a", 1i64), ("b", 2)]))]);
        let spec = |of: &Value| of.get("spec").and_then(Value::as_object).cloned().unwrap();
        let mut object = object();
        spec(&object).mark_judged();
        assert!(!spec(&object).is_judged(), "it can still be changed");
        object.get_mut("spec").and_then(Value::as_object_mut).unwrap().seal();
        assert!(!spec(&object).is_judged());
        let mut copy = object.clone();
        spec(&copy).mark_judged();
        assert!(spec(&object).is_judged() && object.shares("spec", &copy));
        copy.set_at(&["spec", "a"], 3i64.into());
        assert!(spec(&object).is_judged() && !spec(&copy).is_judged() && !object.shares("spec", &copy));
    }

    #[test]
    fn insert_replaces() {
        let mut m = Map::new();
        assert_eq!(m.insert("k", 1i64), None);
        assert_eq!(m.insert("a", 1i64), None);
        assert_eq!(m.insert("k", 2i64), Some(Value::Int(1)));
        assert_eq!(m.len(), 2);
    }
}
