//! How many watches an event of an object would go to, by resource, namespace and name.

use kubelith_meta::Str;
use std::collections::HashMap;

/// Watches that see the same objects, selectors aside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Watched {
    pub group: Str,
    pub resource: Str,
    /// Empty: all.
    pub namespace: Str,
    /// Empty: all.
    pub name: Str,
}

#[derive(Debug, Default)]
pub struct WatchCounts {
    counts: HashMap<Watched, u32>,
}

impl WatchCounts {
    pub fn add(&mut self, watched: Watched) {
        *self.counts.entry(watched).or_default() += 1;
    }

    pub fn remove(&mut self, watched: &Watched) {
        if let Some(count) = self.counts.get_mut(watched) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(watched);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Watches of everything, of the object's namespace, and of the object.
    pub fn interested_in(&self, object: &Watched) -> u32 {
        let count = |watched: &Watched| self.counts.get(watched).copied().unwrap_or(0);
        let all = Watched { group: object.group.clone(), resource: object.resource.clone(), ..Watched::default() };
        let mut total = count(&all);
        if !object.namespace.is_empty() {
            total += count(&Watched { namespace: object.namespace.clone(), ..all });
        }
        if !object.name.is_empty() {
            total += count(object);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_those_who_would_see_it() {
        let pods = |namespace: &str, name: &str| Watched {
            resource: "pods".into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Watched::default()
        };
        let mut counts = WatchCounts::default();
        for watched in [pods("", ""), pods("a", ""), pods("a", ""), pods("a", "x"), pods("b", "")] {
            counts.add(watched);
        }
        assert_eq!(counts.interested_in(&pods("a", "x")), 4);
        assert_eq!(counts.interested_in(&pods("a", "")), 3);
        assert_eq!(counts.interested_in(&pods("c", "y")), 1);
        counts.remove(&pods("", ""));
        counts.remove(&pods("", ""));
        assert_eq!(counts.interested_in(&pods("b", "z")), 1);
        for watched in [pods("a", ""), pods("a", ""), pods("a", "x"), pods("b", "")] {
            counts.remove(&watched);
        }
        assert!(counts.is_empty());
    }
}
