//! A sorted map of which a copy costs nothing, and which knows how many of its entries lie before any key: how many objects
//! follow a page of a list is not found out by counting them.
//!
//! It is a B-tree whose nodes are shared by the copies of the map. Who changes a map copies those nodes on the way to the
//! change that a copy still has; the others it changes in place.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

/// Entries of a leaf, children of a branch. More of them make the tree flatter, and dearer the copy of a node that is shared.
const MOST: usize = 32;
/// A node with fewer joins its neighbour, if both fit into one.
const FEW: usize = MOST / 4;

#[derive(Debug, Clone)]
pub struct CountedMap<K, V> {
    root: Node<K, V>,
}

#[derive(Debug)]
enum Node<K, V> {
    Leaf(Arc<Vec<(K, V)>>),
    Branch(Arc<Vec<Child<K, V>>>),
}

#[derive(Debug, Clone)]
struct Child<K, V> {
    /// No key of the child is less, and every key of the child before it is.
    first: K,
    /// Entries below it.
    len: usize,
    node: Node<K, V>,
}

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Node<K, V> {
        match self {
            Node::Leaf(entries) => Node::Leaf(entries.clone()),
            Node::Branch(children) => Node::Branch(children.clone()),
        }
    }
}

impl<K, V> Default for CountedMap<K, V> {
    fn default() -> CountedMap<K, V> {
        CountedMap { root: Node::Leaf(Arc::default()) }
    }
}

impl<K, V> CountedMap<K, V> {
    pub fn new() -> CountedMap<K, V> {
        CountedMap::default()
    }

    pub fn len(&self) -> usize {
        self.root.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries in the order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter(), left: self.len() };
        iter.descend(&self.root, |_| 0, |_| 0);
        iter
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Ord + Clone, V: Clone> CountedMap<K, V> {
    /// Of entries that are in the order of their keys, each key once.
    pub fn from_sorted(entries: Vec<(K, V)>) -> CountedMap<K, V> {
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
        let mut level: Vec<Child<K, V>> = Vec::with_capacity(entries.len().div_ceil(MOST));
        let mut entries = entries.into_iter();
        loop {
            let leaf: Vec<(K, V)> = entries.by_ref().take(MOST).collect();
            let Some((first, _)) = leaf.first() else { break };
            level.push(Child { first: first.clone(), len: leaf.len(), node: Node::Leaf(Arc::new(leaf)) });
        }
        while level.len() > 1 {
            let mut children = level.into_iter();
            level = Vec::with_capacity(children.len().div_ceil(MOST));
            loop {
                let branch: Vec<Child<K, V>> = children.by_ref().take(MOST).collect();
                let Some(child) = branch.first() else { break };
                let (first, len) = (child.first.clone(), branch.iter().map(|child| child.len).sum());
                level.push(Child { first, len, node: Node::Branch(Arc::new(branch)) });
            }
        }
        level.pop().map_or_else(CountedMap::new, |child| CountedMap { root: child.node })
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).is_some()
    }

    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let mut node = &self.root;
        loop {
            match node {
                Node::Branch(children) => {
                    let behind = children.partition_point(|child| child.first.borrow() <= key);
                    node = &children.get(behind.checked_sub(1)?)?.node;
                }
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
                    return entries.get(at).map(|(key, value)| (key, value));
                }
            }
        }
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        if !self.contains_key(key) {
            return None;
        }
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Branch(children) => {
                    let behind = children.partition_point(|child| child.first.borrow() <= key);
                    node = &mut Arc::make_mut(children).get_mut(behind.checked_sub(1)?)?.node;
                }
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
                    return Arc::make_mut(entries).get_mut(at).map(|(_, value)| value);
                }
            }
        }
    }

    /// How many entries have a key that is less.
    pub fn rank<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match node {
                Node::Branch(children) => {
                    let at = children.partition_point(|child| child.first.borrow() <= key).saturating_sub(1);
                    rank += children[..at].iter().map(|child| child.len).sum::<usize>();
                    node = &children[at].node;
                }
                Node::Leaf(entries) => return rank + entries.partition_point(|(known, _)| known.borrow() < key),
            }
        }
    }

    /// The entries whose key is this or greater.
    pub fn from<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter(), left: self.len() - self.rank(key) };
        iter.descend(
            &self.root,
            |children| children.partition_point(|child| child.first.borrow() <= key).saturating_sub(1),
            |entries| entries.partition_point(|(known, _)| known.borrow() < key),
        );
        iter
    }

    /// Puts an entry in. A key that is there already stays as it is; its value before is answered.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, split) = self.root.insert(key, value);
        if let Some(right) = split {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Arc::default()));
            let first = left.first().expect("a node that is split has entries").clone();
            let left = Child { first, len: left.len(), node: left };
            self.root = Node::Branch(Arc::new(vec![left, right]));
        }
        before
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // Nothing is copied for a key that is not there.
        if !self.contains_key(key) {
            return None;
        }
        let removed = self.root.remove(key);
        while let Node::Branch(children) = &self.root {
            match &children[..] {
                [] => self.root = Node::Leaf(Arc::default()),
                [only] => self.root = only.node.clone(),
                _ => break,
            }
        }
        removed
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for CountedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> CountedMap<K, V> {
        let mut map = CountedMap::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl<'a, K, V> IntoIterator for &'a CountedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K, V> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(children) => children.iter().map(|child| child.len).sum(),
        }
    }

    fn first(&self) -> Option<&K> {
        match self {
            Node::Leaf(entries) => entries.first().map(|(key, _)| key),
            Node::Branch(children) => children.first().map(|child| &child.first),
        }
    }

    /// Entries or children of the node itself.
    fn width(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(children) => children.len(),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    /// Answers the value before, and what did not fit into the node any more.
    fn insert(&mut self, key: K, value: V) -> (Option<V>, Option<Child<K, V>>) {
        match self {
            Node::Leaf(entries) => {
                let at = match entries.binary_search_by(|(known, _)| known.cmp(&key)) {
                    Ok(at) => {
                        let entry = &mut Arc::make_mut(entries)[at];
                        return (Some(std::mem::replace(&mut entry.1, value)), None);
                    }
                    Err(at) => at,
                };
                let right = add(entries, at, (key, value)).map(|right| Child {
                    first: right[0].0.clone(),
                    len: right.len(),
                    node: Node::Leaf(Arc::new(right)),
                });
                (None, right)
            }
            Node::Branch(children) => {
                let at = children.partition_point(|child| child.first <= key).saturating_sub(1);
                let child = &mut Arc::make_mut(children)[at];
                if key < child.first {
                    child.first = key.clone();
                }
                let (before, split) = child.node.insert(key, value);
                child.len += usize::from(before.is_none());
                let Some(split) = split else { return (before, None) };
                child.len -= split.len;
                let right = add(children, at + 1, split).map(|right| Child {
                    first: right[0].first.clone(),
                    len: right.iter().map(|child| child.len).sum(),
                    node: Node::Branch(Arc::new(right)),
                });
                (before, right)
            }
        }
    }

    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        match self {
            Node::Leaf(entries) => {
                let at = entries.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
                Some(Arc::make_mut(entries).remove(at).1)
            }
            Node::Branch(children) => {
                let at = children.partition_point(|child| child.first.borrow() <= key).checked_sub(1)?;
                let children = Arc::make_mut(children);
                let child = &mut children[at];
                let removed = child.node.remove(key)?;
                child.len -= 1;
                if child.node.width() < FEW {
                    join(children, at);
                }
                Some(removed)
            }
        }
    }
}

/// Puts an item into a node; answers the node behind it that this made, if it was full.
fn add<T: Clone>(node: &mut Arc<Vec<T>>, at: usize, item: T) -> Option<Vec<T>> {
    if Arc::get_mut(node).is_none() {
        // The copy has room for the item at once.
        let mut copy = Vec::with_capacity((node.len() + 1).next_power_of_two().min(MOST));
        copy.extend_from_slice(node);
        *node = Arc::new(copy);
    }
    let items = Arc::make_mut(node);
    if items.len() < MOST {
        items.insert(at, item);
        return None;
    }
    // Keys that come in order fill their nodes.
    let middle = if at == MOST { MOST } else { MOST / 2 };
    let mut right = items.split_off(middle);
    match at.checked_sub(middle) {
        Some(at) => right.insert(at, item),
        None => items.insert(at, item),
    }
    Some(right)
}

/// Joins a child with a neighbour, if both fit into one node; drops it if it is empty.
fn join<K: Clone, V: Clone>(children: &mut Vec<Child<K, V>>, at: usize) {
    if children[at].len == 0 {
        children.remove(at);
        return;
    }
    let fits = |left: usize| match children.get(left..left + 2) {
        Some([a, b]) => a.node.width() + b.node.width() <= MOST,
        _ => false,
    };
    let Some(left) = [at.checked_sub(1), Some(at)].into_iter().flatten().find(|left| fits(*left)) else { return };
    let right = children.remove(left + 1);
    let joined = &mut children[left];
    joined.len += right.len;
    match (&mut joined.node, right.node) {
        (Node::Leaf(left), Node::Leaf(right)) => Arc::make_mut(left).extend_from_slice(&right),
        (Node::Branch(left), Node::Branch(right)) => Arc::make_mut(left).extend_from_slice(&right),
        _ => unreachable!("nodes beside each other are equally high"),
    }
}

/// Entries in the order of their keys.
#[derive(Debug)]
pub struct Iter<'a, K, V> {
    /// The branches on the way, with the children that are still to come.
    above: Vec<std::slice::Iter<'a, Child<K, V>>>,
    leaf: std::slice::Iter<'a, (K, V)>,
    left: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn descend(
        &mut self,
        mut node: &'a Node<K, V>,
        child: impl Fn(&[Child<K, V>]) -> usize,
        entry: impl Fn(&[(K, V)]) -> usize,
    ) {
        loop {
            match node {
                Node::Branch(children) => {
                    let mut coming = children[child(children)..].iter();
                    let Some(next) = coming.next() else { return };
                    self.above.push(coming);
                    node = &next.node;
                }
                Node::Leaf(entries) => {
                    self.leaf = entries[entry(entries)..].iter();
                    return;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                self.left -= 1;
                return Some((key, value));
            }
            let next = self.above.last_mut()?.next();
            match next {
                Some(child) => self.descend(&child.node, |_| 0, |_| 0),
                None => drop(self.above.pop()),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

impl<V: Clone> CountedMap<Arc<str>, V> {
    /// The places of the keys that begin with `prefix`.
    pub fn ranks_below(&self, prefix: &str) -> Range<usize> {
        let end = match prefix_end(prefix) {
            Some(end) => self.rank(end.as_str()),
            None => self.len(),
        };
        self.rank(prefix)..end
    }
}

/// The least text that is greater than all that begin with `prefix`, if there is one.
fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Every node is of the size it may have, and what branches say of their children is true.
    fn check(node: &Node<u32, u32>, above: Option<(&u32, Option<&u32>)>) -> usize {
        let within = |key: &u32| above.is_none_or(|(from, to)| key >= from && to.is_none_or(|to| key < to));
        assert!(node.width() <= MOST);
        match node {
            Node::Leaf(entries) => {
                assert!(entries.is_sorted_by(|a, b| a.0 < b.0) && entries.iter().all(|(key, _)| within(key)));
                entries.len()
            }
            Node::Branch(children) => {
                assert!(children.iter().all(|child| within(&child.first)));
                let nexts = children.iter().skip(1).map(|child| Some(&child.first)).chain([None]);
                let lens = children.iter().zip(nexts).map(|(child, next)| {
                    assert_eq!(check(&child.node, Some((&child.first, next))), child.len);
                    assert!(child.len > 0);
                    child.len
                });
                lens.sum()
            }
        }
    }

    fn is_same(map: &CountedMap<u32, u32>, model: &BTreeMap<u32, u32>) {
        assert_eq!(check(&map.root, None), model.len());
        assert!(map.iter().eq(model.iter()));
        assert_eq!((map.len(), map.iter().len(), map.is_empty()), (model.len(), model.len(), model.is_empty()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_is_a_sorted_map(steps in prop::collection::vec((0..4u8, 0..3000u32, any::<u32>()), 1..4000)) {
            let (mut map, mut model) = (CountedMap::new(), BTreeMap::new());
            let mut kept = Vec::new();
            for (i, (what, key, value)) in steps.into_iter().enumerate() {
                match what {
                    // In two thirds of the run it grows, then it shrinks.
                    0 => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                    1 if i % 1500 < 1000 => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                    1 | 2 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    _ => {
                        prop_assert_eq!(map.get(&key), model.get(&key));
                        prop_assert_eq!(map.rank(&key), model.range(..key).count());
                        prop_assert!(map.from(&key).eq(model.range(key..)));
                        prop_assert_eq!(map.from(&key).len(), model.range(key..).count());
                    }
                }
                if i % 500 == 0 {
                    kept.push((map.clone(), model.clone()));
                }
            }
            is_same(&map, &model);
            kept.iter().for_each(|(map, model)| is_same(map, model));
            let sorted = CountedMap::from_sorted(model.clone().into_iter().collect());
            is_same(&sorted, &model);
            for key in model.keys() {
                prop_assert_eq!(map.remove(key), model.get(key).copied());
            }
            prop_assert!(map.is_empty() && map.iter().next().is_none());
        }
    }

    #[test]
    fn keys_that_come_in_order_fill_their_nodes() {
        let map: CountedMap<u32, u32> = (0..32_000).map(|i| (i, i)).collect();
        let Node::Branch(children) = &map.root else { panic!("one level") };
        let leaves = children.iter().map(|child| child.node.width()).sum::<usize>();
        assert_eq!(leaves, 32_000 / MOST);
    }

    #[test]
    fn prefixes_have_places() {
        let keys = ["a/1", "a/2", "b", "b/1", "b/2", "b0", "c/1"];
        let map: CountedMap<Arc<str>, ()> = keys.iter().map(|key| (Arc::from(*key), ())).collect();
        let cases = [("", 0..7), ("a/", 0..2), ("b/", 3..5), ("c/", 6..7), ("d/", 7..7), ("0", 0..0)];
        for (prefix, places) in cases {
            assert_eq!(map.ranks_below(prefix), places, "{prefix}");
        }
        assert_eq!(prefix_end("a\u{d7ff}"), Some("a\u{e000}".into()), "what is no character is passed over");
        assert_eq!(prefix_end("\u{10ffff}"), None);
    }
}
