//! A map whose entries end at a time, bounded in number; the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Instant;

pub struct ExpiringMap<K, V> {
    entries: HashMap<K, (Instant, V)>,
    /// Keys in the order they came.
    order: VecDeque<(K, Instant)>,
    max: usize,
}

impl<K: Eq + Hash + Clone, V> ExpiringMap<K, V> {
    pub fn new(max: usize) -> ExpiringMap<K, V> {
        ExpiringMap { entries: HashMap::new(), order: VecDeque::new(), max }
    }

    pub fn get(&self, key: &K, now: Instant) -> Option<&V> {
        self.entries.get(key).filter(|(until, _)| now < *until).map(|(_, value)| value)
    }

    pub fn insert(&mut self, key: K, value: V, until: Instant) {
        self.entries.insert(key.clone(), (until, value));
        self.order.push_back((key, until));
        while self.order.len() > self.max {
            let Some((oldest, until)) = self.order.pop_front() else { return };
            // A key that came again since has a newer end, and a newer place in the order.
            if self.entries.get(&oldest).is_some_and(|(u, _)| *u == until) {
                self.entries.remove(&oldest);
            }
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn entries_end_and_the_oldest_goes_first() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut map = ExpiringMap::new(2);
        map.insert("a", 1, at(10));
        assert_eq!((map.get(&"a", at(9)), map.get(&"a", at(10))), (Some(&1), None));
        map.insert("b", 2, at(10));
        map.insert("a", 3, at(20));
        assert_eq!((map.get(&"a", at(15)), map.get(&"b", at(5))), (Some(&3), Some(&2)));
        map.insert("c", 4, at(20));
        assert_eq!((map.get(&"b", at(5)), map.get(&"a", at(15)), map.len()), (None, Some(&3), 2));
    }
}
