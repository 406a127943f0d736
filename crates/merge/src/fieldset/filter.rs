//! Which fields a request may own: strategies reset some, subresources write only a few.

use super::element::PathElement;
use super::set::{Node, Set};

/// Takes fields out of sets.
#[derive(Debug, Clone)]
pub enum Filter {
    /// These fields and all below them are never owned.
    Exclude(Set),
    /// Only fields that match are owned.
    Include(Matcher),
}

/// A tree of patterns.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    /// Everything from here on matches.
    all: bool,
    members: Vec<(Pattern, Matcher)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    Any,
    Is(PathElement),
}

impl Filter {
    pub fn apply(&self, set: &mut Set) {
        match self {
            Filter::Exclude(excluded) => set.remove_recursively(excluded),
            Filter::Include(matcher) => *set = matcher.select(set),
        }
    }
}

impl Matcher {
    /// Matches every path that starts so.
    pub fn prefix(parts: impl IntoIterator<Item = Pattern, IntoIter: DoubleEndedIterator>) -> Matcher {
        let everything = Matcher { all: true, members: Vec::new() };
        parts.into_iter().rev().fold(everything, |child, part| Matcher { all: false, members: vec![(part, child)] })
    }

    /// Matches what either matches.
    pub fn or(mut self, other: Matcher) -> Matcher {
        if self.all || other.all {
            return Matcher { all: true, members: Vec::new() };
        }
        for (pattern, child) in other.members {
            match self.members.iter().position(|(p, _)| *p == pattern) {
                Some(i) => {
                    let mine = std::mem::take(&mut self.members[i].1);
                    self.members[i].1 = mine.or(child);
                }
                None if pattern == Pattern::Any => self.members.insert(0, (pattern, child)),
                None => self.members.push((pattern, child)),
            }
        }
        self
    }

    fn select(&self, set: &Set) -> Set {
        if self.all {
            return set.clone();
        }
        let select = |node: &Node| {
            // Wildcards stand first and win.
            let (_, child) = self.members.iter().find(|(pattern, _)| pattern.matches(&node.element))?;
            Some(Node { element: node.element.clone(), member: node.member, children: child.select(&node.children) })
        };
        let nodes = set.nodes().iter().filter_map(select).filter(|n| n.member || !n.children.is_empty()).collect();
        Set::from_unsorted(nodes)
    }
}

impl Pattern {
    pub fn field(name: &str) -> Pattern {
        Pattern::Is(PathElement::field(name))
    }

    fn matches(&self, element: &PathElement) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Is(wanted) => wanted == element,
        }
    }
}
