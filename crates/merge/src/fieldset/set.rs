//! A set of fields as a tree of sorted vectors.

use super::element::{Path, PathElement};
use std::cmp::Ordering;

/// A set of paths. A path can be in the set with or without the paths below it, and those without it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted by element; each is a member or has children.
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    /// The path that ends here is in the set.
    pub(crate) member: bool,
    pub(crate) children: Set,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl Set {
    pub const fn new() -> Set {
        Set { nodes: Vec::new() }
    }

    pub(crate) fn with_capacity(n: usize) -> Set {
        Set { nodes: Vec::with_capacity(n) }
    }

    /// The set of these paths of field names.
    pub fn of_fields(paths: &[&[&str]]) -> Set {
        let mut set = Set::new();
        for path in paths {
            set.insert(&Path::fields(path));
        }
        set
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Appends a node, which must come after all others; one without content is left out.
    pub(crate) fn push(&mut self, element: PathElement, member: bool, children: Set) {
        debug_assert!(self.nodes.last().is_none_or(|last| last.element < element));
        if member || !children.is_empty() {
            self.nodes.push(Node { element, member, children });
        }
    }

    /// Makes a set of nodes in any order. Of nodes for the same element all count as to membership, the last one's
    /// children stay.
    pub(crate) fn from_unsorted(mut nodes: Vec<Node>) -> Set {
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, kept| {
                let same = later.element == kept.element;
                if same {
                    kept.member |= later.member;
                    if !later.children.is_empty() {
                        kept.children = std::mem::take(&mut later.children);
                    }
                }
                same
            });
        }
        Set { nodes }
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|n| usize::from(n.member) + n.children.len()).sum()
    }

    /// Adds a path; its parents are not added. The empty path is in no set.
    pub fn insert(&mut self, path: &Path) {
        let Some((last, parents)) = path.0.split_last() else { return };
        let mut set = self;
        for element in parents {
            set = &mut set.entry(element).children;
        }
        set.entry(last).member = true;
    }

    fn entry(&mut self, element: &PathElement) -> &mut Node {
        let i = match self.nodes.binary_search_by(|n| n.element.cmp(element)) {
            Ok(i) => i,
            Err(i) => {
                self.nodes.insert(i, Node { element: element.clone(), member: false, children: Set::new() });
                i
            }
        };
        &mut self.nodes[i]
    }

    pub fn contains(&self, path: &Path) -> bool {
        let Some((last, parents)) = path.0.split_last() else { return false };
        let mut set = self;
        for element in parents {
            match set.node(element) {
                Some(node) => set = &node.children,
                None => return false,
            }
        }
        set.node(last).is_some_and(|n| n.member)
    }

    /// What is in the set at and below `element`.
    pub(crate) fn node(&self, element: &PathElement) -> Option<&Node> {
        self.nodes.binary_search_by(|n| n.element.cmp(element)).ok().map(|i| &self.nodes[i])
    }

    /// Everything in either set.
    pub fn union(&self, other: &Set) -> Set {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        for pair in Zip::new(&self.nodes, &other.nodes) {
            nodes.push(match pair {
                (Some(a), Some(b)) => Node {
                    element: a.element.clone(),
                    member: a.member || b.member,
                    children: a.children.union(&b.children),
                },
                (Some(one), None) | (None, Some(one)) => one.clone(),
                (None, None) => continue,
            });
        }
        Set { nodes }
    }

    /// The paths in both sets.
    pub fn intersection(&self, other: &Set) -> Set {
        let mut nodes = Vec::new();
        for pair in Zip::new(&self.nodes, &other.nodes) {
            if let (Some(a), Some(b)) = pair {
                let member = a.member && b.member;
                let children = a.children.intersection(&b.children);
                if member || !children.is_empty() {
                    nodes.push(Node { element: a.element.clone(), member, children });
                }
            }
        }
        Set { nodes }
    }

    /// The paths that are in this set and not in the other. A path in the other does not take away those below it.
    pub fn difference(&self, other: &Set) -> Set {
        let mut left = self.clone();
        left.remove(other);
        left
    }

    /// Takes the paths of the other set out of this one, and not those below them.
    pub fn remove(&mut self, other: &Set) {
        self.subtract(other, &|_, mine, other| mine.remove(other));
    }

    /// As `remove`, but a path in the other set takes everything below it away, too.
    pub fn remove_recursively(&mut self, other: &Set) {
        self.subtract(other, &|taken, mine, other| match taken {
            true => mine.nodes.clear(),
            false => mine.remove_recursively(other),
        });
    }

    fn subtract(&mut self, other: &Set, below: &dyn Fn(bool, &mut Set, &Set)) {
        let mut others = other.nodes.as_slice();
        self.nodes.retain_mut(|node| {
            while others.first().is_some_and(|o| o.element < node.element) {
                others = &others[1..];
            }
            if let Some(other) = others.first().filter(|o| o.element == node.element) {
                node.member &= !other.member;
                below(other.member, &mut node.children, &other.children);
            }
            !node.is_empty()
        });
    }

    /// Adds everything in the other set.
    pub fn add(&mut self, other: Set) {
        if self.is_empty() {
            *self = other;
        } else if !other.is_empty() {
            *self = self.union(&other);
        }
    }

    /// Whether every path of this set is in the other.
    pub fn is_subset(&self, other: &Set) -> bool {
        Zip::new(&self.nodes, &other.nodes).all(|pair| match pair {
            (Some(a), Some(b)) => (b.member || !a.member) && a.children.is_subset(&b.children),
            (Some(_), None) => false,
            _ => true,
        })
    }

    /// Whether no path is in both sets.
    pub fn is_disjoint(&self, other: &Set) -> bool {
        Zip::new(&self.nodes, &other.nodes).all(|pair| match pair {
            (Some(a), Some(b)) => !(a.member && b.member) && a.children.is_disjoint(&b.children),
            _ => true,
        })
    }

    /// The paths that no other path of the set continues.
    pub fn leaves(&self) -> Set {
        let leaf = |n: &Node| Node {
            element: n.element.clone(),
            member: n.member && n.children.is_empty(),
            children: n.children.leaves(),
        };
        Set { nodes: self.nodes.iter().map(leaf).collect() }
    }

    /// Every path: at each level first those that end there, then those that go on.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Path::default(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Path, out: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|n| n.member) {
            let mut path = prefix.clone();
            path.0.push(node.element.clone());
            out.push(path);
        }
        for node in &self.nodes {
            prefix.0.push(node.element.clone());
            node.children.collect_paths(prefix, out);
            prefix.0.pop();
        }
    }
}

/// Walks two sorted node lists side by side.
struct Zip<'a> {
    left: &'a [Node],
    right: &'a [Node],
}

impl<'a> Zip<'a> {
    fn new(left: &'a [Node], right: &'a [Node]) -> Zip<'a> {
        Zip { left, right }
    }
}

impl<'a> Iterator for Zip<'a> {
    type Item = (Option<&'a Node>, Option<&'a Node>);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.left.first(), self.right.first()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(l), Some(r)) => l.element.cmp(&r.element),
        };
        let mut take = |take_left: bool, take_right: bool| {
            let left = if take_left { self.left.split_off_first() } else { None };
            let right = if take_right { self.right.split_off_first() } else { None };
            (left, right)
        };
        Some(take(order.is_le(), order.is_ge()))
    }
}
