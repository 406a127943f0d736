//! A map whose entries end after a while, bounded in number; the oldest goes first.

use kubelith_meta::time::{Duration, Time};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

pub struct ExpiringMap<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Keys in the order they came, with when.
    order: VecDeque<(K, Time)>,
    max: usize,
}

struct Entry<V> {
    since: Time,
    until: Time,
    value: V,
}

impl<K: Eq + Hash + Clone, V> ExpiringMap<K, V> {
    pub fn new(max: usize) -> ExpiringMap<K, V> {
        ExpiringMap { entries: HashMap::new(), order: VecDeque::new(), max }
    }

    /// An entry from the future was made before the clock was set back; it must not live longer for that.
    pub fn get(&self, key: &K, now: Time) -> Option<&V> {
        let entry = self.entries.get(key)?;
        (entry.since <= now && now < entry.until).then_some(&entry.value)
    }

    pub fn insert(&mut self, key: K, value: V, now: Time, ttl: std::time::Duration) {
        let ttl = Duration::from_nanos(i64::try_from(ttl.as_nanos()).unwrap_or(i64::MAX));
        self.entries.insert(key.clone(), Entry { since: now, until: now + ttl, value });
        self.order.push_back((key, now));
        while self.order.len() > self.max || self.is_oldest_over(now) {
            let Some((oldest, since)) = self.order.pop_front() else { return };
            // A key that came again later has a newer place in the order.
            if self.entries.get(&oldest).is_some_and(|e| e.since == since) {
                self.entries.remove(&oldest);
            }
        }
    }

    /// What nobody will be told any more need not be kept until there are too many.
    fn is_oldest_over(&self, now: Time) -> bool {
        let Some((oldest, since)) = self.order.front() else { return false };
        self.entries.get(oldest).is_none_or(|e| e.since != *since || e.until <= now)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_and_the_oldest_goes_first() {
        let ten = std::time::Duration::from_secs(10);
        let at = Time::from_unix;
        let mut map = ExpiringMap::new(2);
        map.insert("a", 1, at(100), ten);
        assert_eq!((map.get(&"a", at(109)), map.get(&"a", at(110))), (Some(&1), None));
        assert_eq!(map.get(&"a", at(99)), None, "the clock was set back");
        map.insert("b", 2, at(100), ten);
        map.insert("a", 3, at(109), ten);
        assert_eq!((map.get(&"a", at(115)), map.get(&"b", at(105))), (Some(&3), Some(&2)));
        map.insert("c", 4, at(109), ten);
        assert_eq!((map.get(&"b", at(105)), map.get(&"a", at(115)), map.len()), (None, Some(&3), 2));
    }

    #[test]
    fn what_is_over_is_not_kept() {
        let (ten, at) = (std::time::Duration::from_secs(10), Time::from_unix);
        let mut map = ExpiringMap::new(1000);
        for i in 0..100 {
            map.insert(i, (), at(100), ten);
        }
        map.insert(0, (), at(105), ten);
        assert_eq!(map.len(), 100);
        map.insert(200, (), at(110), ten);
        assert_eq!((map.len(), map.order.len()), (2, 2), "one of them was made again since then");
        map.insert(201, (), at(115), ten);
        assert_eq!((map.len(), map.order.len()), (2, 2));
    }
}
