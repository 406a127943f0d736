//! Objects that were changed lately, as values: who changes one again need not read it from its text. Controllers write the
//! same objects over and over.

use bytes::Bytes;
use kubelith_meta::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

/// JSON of the objects that are kept; as values they take up to four times as much, and parts that nobody has looked into keep the
/// text that the object was first read from. The oldest go first. 300 large pods: what
/// controllers write over and over comes again within seconds.
const MAX_BYTES: usize = 2 << 20;

#[derive(Default)]
pub struct Recent {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By store key.
    objects: HashMap<Bytes, Kept>,
    /// Keys in the order in which they came, with their places; a key whose place is another one by now came again.
    order: VecDeque<(Bytes, u64)>,
    next: u64,
    bytes: usize,
}

struct Kept {
    revision: i64,
    object: Value,
    bytes: usize,
    place: u64,
    /// Written or asked for since the last [`Recent::drop_unused`].
    used: bool,
}

impl Recent {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic under this lock")
    }

    /// Keeps what was written at a revision; `bytes` is the length of its JSON.
    pub fn put(&self, key: Bytes, revision: i64, object: Value, bytes: usize) {
        let mut inner = self.inner();
        // A later write may have been quicker to come here.
        if inner.objects.get(&key).is_some_and(|kept| kept.revision > revision) {
            return;
        }
        inner.next += 1;
        let place = inner.next;
        inner.order.push_back((key.clone(), place));
        inner.bytes += bytes;
        let kept = Kept { revision, object, bytes, place, used: true };
        let before = inner.objects.insert(key, kept);
        inner.bytes -= before.as_ref().map_or(0, |kept| kept.bytes);
        let mut gone = vec![before];
        while inner.bytes > MAX_BYTES {
            let Some((key, place)) = inner.order.pop_front() else { break };
            gone.push(inner.remove(&key, place));
        }
        inner.forget_places();
        // Values are dropped when others can go on.
        drop(inner);
    }

    /// The object as it was written at this revision, if it is kept.
    pub fn get(&self, key: &Bytes, revision: i64) -> Option<Value> {
        self.find(key, |written| written == revision).map(|(_, object)| object)
    }

    /// The object as it was last written, and when, if that was not before this revision.
    pub fn since(&self, key: &Bytes, revision: i64) -> Option<(i64, Value)> {
        self.find(key, |written| written >= revision)
    }

    fn find(&self, key: &Bytes, fits: impl Fn(i64) -> bool) -> Option<(i64, Value)> {
        let mut inner = self.inner();
        let kept = inner.objects.get_mut(key).filter(|kept| fits(kept.revision))?;
        kept.used = true;
        Some((kept.revision, kept.object.clone()))
    }

    /// How much JSON the kept objects have.
    pub fn bytes(&self) -> usize {
        self.inner().bytes
    }

    /// Drops what nobody wrote or asked for since the last call.
    pub(super) fn drop_unused(&self) {
        let mut inner = self.inner();
        let unused: Vec<Kept> = inner
            .objects
            .extract_if(|_, kept| !std::mem::replace(&mut kept.used, false))
            .map(|(_, kept)| kept)
            .collect();
        inner.bytes -= unused.iter().map(|kept| kept.bytes).sum::<usize>();
        inner.forget_places();
        if inner.objects.is_empty() {
            *inner = Inner { next: inner.next, ..Inner::default() };
        }
        drop(inner);
    }
}

impl Inner {
    fn remove(&mut self, key: &Bytes, place: u64) -> Option<Kept> {
        if self.objects.get(key).is_none_or(|kept| kept.place != place) {
            return None;
        }
        let kept = self.objects.remove(key)?;
        self.bytes -= kept.bytes;
        Some(kept)
    }

    /// Keys that were written many times have left places behind.
    fn forget_places(&mut self) {
        if self.order.len() > 2 * self.objects.len() + 64 {
            let objects = &self.objects;
            self.order.retain(|(key, place)| objects.get(key).is_some_and(|kept| kept.place == *place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_within_bounds() {
        let recent = Recent::default();
        let key = |i: usize| Bytes::from(format!("/k/{i}"));
        for i in 0..1000 {
            recent.put(key(i), i as i64, Value::Int(i as i64), MAX_BYTES / 100);
        }
        assert_eq!(recent.get(&key(999), 999), Some(Value::Int(999)));
        assert_eq!(recent.get(&key(900), 900), Some(Value::Int(900)));
        assert_eq!(recent.get(&key(899), 899), None, "it had to go");
        assert_eq!(recent.get(&key(999), 998), None, "another revision");
        recent.put(key(999), 1001, Value::Int(-1), 1);
        recent.put(key(999), 1000, Value::Int(-2), 1);
        assert_eq!(recent.get(&key(999), 1001), Some(Value::Int(-1)), "an earlier one that comes later is not taken");
        for i in 0..10_000 {
            recent.put(key(1), i, Value::Null, 1);
        }
        assert!(recent.inner().order.len() < 500, "places are forgotten");
    }

    #[test]
    fn what_is_not_used_goes() {
        let recent = Recent::default();
        let keys = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        keys.iter().for_each(|key| recent.put(key.clone(), 1, Value::Null, 10));
        recent.drop_unused();
        assert!(recent.get(&keys[0], 1).is_some());
        recent.drop_unused();
        assert!(recent.get(&keys[0], 1).is_some() && recent.get(&keys[1], 1).is_none());
        recent.drop_unused();
        recent.drop_unused();
        let inner = recent.inner();
        assert!(inner.objects.is_empty() && inner.order.is_empty() && inner.bytes == 0);
    }
}
