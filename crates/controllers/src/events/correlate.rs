//! Which events are written, and how: those of the same content are counted in one object, many that differ in their message
//! alone become one, and an object about which too much is said is left alone. The figures are client-go's.

use super::Subject;
use kubelith_meta::time::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is remembered of each kind; the longest unused goes first.
const MAX_REMEMBERED: usize = 4096;
/// From this many on, events that differ in their message alone are one.
const MAX_SIMILAR: usize = 10;
/// Such events are similar as long as they come within this time.
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// Events about an object, of one source: so many at once, and then one in so many seconds.
const BURST: f64 = 25.0;
const SECONDS_PER_EVENT: f64 = 300.0;

/// What happened.
#[derive(Debug, Clone, Copy)]
pub struct Occurrence<'a> {
    pub component: &'a str,
    pub subject: &'a Subject,
    pub kind: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// What is written about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Under which a repetition finds it again.
    key: String,
    pub name: String,
    pub message: String,
    pub count: i64,
    pub first: Time,
}

#[derive(Default)]
pub struct Correlator {
    similar: Memory<Similar>,
    written: Memory<Written>,
    budgets: Memory<Budget>,
}

struct Similar {
    messages: BTreeSet<String>,
    last: Time,
}

#[derive(Clone)]
struct Written {
    name: String,
    count: i64,
    first: Time,
}

struct Budget {
    left: f64,
    since: Time,
}

impl Correlator {
    /// What to write; nothing if enough was said. `name` is that of a new object.
    pub fn see(&mut self, what: Occurrence<'_>, name: String, now: Time) -> Option<Entry> {
        let (key, message) = self.combined(what, now);
        let known = self.written.get(&key).cloned();
        let entry = match known {
            Some(known) => Entry { key, name: known.name, message, count: known.count + 1, first: known.first },
            None => Entry { key, name, message, count: 1, first: now },
        };
        self.wrote(&entry);
        self.pay(what, now).then_some(entry)
    }

    fn wrote(&mut self, entry: &Entry) {
        let written = Written { name: entry.name.clone(), count: entry.count, first: entry.first };
        self.written.put(entry.key.clone(), written);
    }

    /// The event itself, or that of many that are similar.
    fn combined(&mut self, what: Occurrence<'_>, now: Time) -> (String, String) {
        let group = format!("{}{}{}", about(what), what.reason, what.component);
        let recent = |similar: &&mut Similar| now.since(similar.last) <= SIMILAR_WITHIN;
        let distinct = match self.similar.get(&group).filter(recent) {
            Some(similar) => {
                similar.last = now;
                // More need not be known than that there are so many.
                if similar.messages.len() < MAX_SIMILAR {
                    similar.messages.insert(what.message.to_owned());
                }
                similar.messages.len()
            }
            None => {
                self.similar.put(group.clone(), Similar { messages: [what.message.to_owned()].into(), last: now });
                1
            }
        };
        if distinct < MAX_SIMILAR {
            return (format!("{}{}{}", about(what), what.reason, what.message), what.message.to_owned());
        }
        (group, format!("(combined from similar events): {}", what.message))
    }

    fn pay(&mut self, what: Occurrence<'_>, now: Time) -> bool {
        let key = about(what);
        let mut left = BURST;
        if let Some(budget) = self.budgets.get(&key) {
            let earned = std::time::Duration::from(now.since(budget.since)).as_secs_f64() / SECONDS_PER_EVENT;
            left = (budget.left + earned).min(BURST);
        }
        let enough = left >= 1.0;
        self.budgets.put(key, Budget { left: if enough { left - 1.0 } else { left }, since: now });
        enough
    }
}

/// Who says something about what.
fn about(what: Occurrence<'_>) -> String {
    let Subject { api_version, kind, namespace, name, uid, .. } = what.subject;
    [what.component, kind, namespace, name, uid, api_version, what.kind].join("\n")
}

/// A map of bounded size.
struct Memory<T> {
    entries: HashMap<String, (u64, T)>,
    /// By the time of their use.
    order: BTreeMap<u64, String>,
    clock: u64,
}

impl<T> Default for Memory<T> {
    fn default() -> Memory<T> {
        Memory { entries: HashMap::new(), order: BTreeMap::new(), clock: 0 }
    }
}

impl<T> Memory<T> {
    fn get(&mut self, key: &str) -> Option<&mut T> {
        let (used, value) = self.entries.get_mut(key)?;
        self.clock += 1;
        self.order.remove(used);
        self.order.insert(self.clock, key.to_owned());
        *used = self.clock;
        Some(value)
    }

    fn put(&mut self, key: String, value: T) {
        self.clock += 1;
        self.order.insert(self.clock, key.clone());
        if let Some((used, _)) = self.entries.insert(key, (self.clock, value)) {
            self.order.remove(&used);
        }
        if self.entries.len() > MAX_REMEMBERED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Subject {
        Subject {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: "n".into(),
            name: name.into(),
            uid: "u".into(),
            resource_version: "1".into(),
        }
    }

    fn see(correlator: &mut Correlator, name: &str, message: &str, second: i64) -> Option<(String, String, i64)> {
        let subject = subject(name);
        let what = Occurrence { component: "c", subject: &subject, kind: "Normal", reason: "R", message };
        let entry = correlator.see(what, format!("e{second}"), Time::from_unix(second))?;
        Some((entry.name, entry.message, entry.count))
    }

    #[test]
    fn the_same_is_counted() {
        let mut all = Correlator::default();
        assert_eq!(see(&mut all, "p", "m", 1), Some(("e1".into(), "m".into(), 1)));
        assert_eq!(see(&mut all, "p", "m", 2), Some(("e1".into(), "m".into(), 2)));
        assert_eq!(see(&mut all, "q", "m", 3), Some(("e3".into(), "m".into(), 1)));
        assert_eq!(see(&mut all, "p", "other", 4), Some(("e4".into(), "other".into(), 1)));
        assert_eq!(see(&mut all, "p", "m", 5), Some(("e1".into(), "m".into(), 3)));
    }

    #[test]
    fn many_that_are_similar_become_one() {
        let mut all = Correlator::default();
        for i in 1..10 {
            assert_eq!(see(&mut all, "p", &format!("m{i}"), i), Some((format!("e{i}"), format!("m{i}"), 1)));
        }
        let combined = |message: &str| format!("(combined from similar events): {message}");
        assert_eq!(see(&mut all, "p", "m10", 10), Some(("e10".into(), combined("m10"), 1)));
        assert_eq!(see(&mut all, "p", "m11", 11), Some(("e10".into(), combined("m11"), 2)));
        // After a pause all begins anew.
        assert_eq!(see(&mut all, "p", "m12", 700), Some(("e700".into(), "m12".into(), 1)));
    }

    #[test]
    fn who_says_too_much_is_not_heard() {
        let mut all = Correlator::default();
        let heard = (0..30).filter(|_| see(&mut all, "p", "m", 1).is_some()).count();
        assert_eq!(heard, 25);
        assert_eq!(see(&mut all, "p", "m", 300), None);
        assert_eq!(see(&mut all, "p", "m", 302).map(|(_, _, count)| count), Some(32), "what was not said counts");
        assert!(see(&mut all, "q", "m", 302).is_some(), "others are");
    }

    #[test]
    fn memory_is_bounded() {
        let mut memory = Memory::default();
        for i in 0..=MAX_REMEMBERED {
            memory.put(i.to_string(), i);
            memory.get("0");
        }
        assert_eq!((memory.entries.len(), memory.order.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
        assert!(memory.get("0").is_some() && memory.get("1").is_none());
    }
}
