//! Answers scripted by tests: "409 to the next three updates of x", "410 to the next watch of pods", "end this watch". Only a server
//! with `--enable-test-api` has the filter that asks for them (`filters/faults.rs`).

mod rule;

pub use rule::{Asker, Effect, Fault, FaultAnswer, Target};

use kubelith_http::RequestInfo;
use kubelith_meta::{Status, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// Faults at a time; more is a test that forgets to clear them.
const MAX_FAULTS: usize = 10_000;

/// The faults of a server. One fault at most acts on a request: the oldest that has turns left.
#[derive(Default)]
pub struct Faults {
    state: Mutex<FaultState>,
}

#[derive(Default)]
struct FaultState {
    next: u64,
    /// In the order in which they came.
    faults: BTreeMap<u64, Counted>,
    watches: Vec<OpenWatch>,
    sweep_at: usize,
}

struct Counted {
    fault: Fault,
    /// Requests that it was meant for, those that it passed over included.
    seen: u64,
    /// Those that it acted on.
    hits: u64,
}

struct OpenWatch {
    user: String,
    is_server: bool,
    info: Arc<RequestInfo>,
    end: CancellationToken,
    alive: Weak<()>,
}

/// Lives as long as a watch.
pub struct WatchEntry {
    pub end: CancellationToken,
    pub alive: Arc<()>,
}

/// A fault as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultReport {
    pub id: u64,
    pub fault: Fault,
    pub seen: u64,
    pub hits: u64,
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault and answers its id. One that ends watches acts on those that are open now, too.
    pub fn add(&self, fault: Fault) -> Result<u64, Status> {
        let mut state = self.state();
        if state.faults.len() >= MAX_FAULTS {
            return Err(Status::bad_request(format!("there are {MAX_FAULTS} faults already")));
        }
        state.next += 1;
        let id = state.next;
        let mut counted = Counted { fault, seen: 0, hits: 0 };
        if counted.fault.effect == Effect::EndWatch {
            for watch in state.watches.iter().filter(|watch| watch.alive.strong_count() > 0) {
                if counted.fault.target.matches(watch.asker(), &watch.info) && counted.turn() {
                    watch.end.cancel();
                }
            }
            state.watches.retain(|watch| !watch.end.is_cancelled());
        }
        state.faults.insert(id, counted);
        Ok(id)
    }

    pub fn list(&self) -> Vec<FaultReport> {
        let report = |(id, counted): (&u64, &Counted)| FaultReport {
            id: *id,
            fault: counted.fault.clone(),
            seen: counted.seen,
            hits: counted.hits,
        };
        self.state().faults.iter().map(report).collect()
    }

    /// How often a fault has acted; `None` if there is none of this id.
    pub fn hits(&self, id: u64) -> Option<u64> {
        self.state().faults.get(&id).map(|counted| counted.hits)
    }

    /// Removes one; false if there is none of this id.
    pub fn remove(&self, id: u64) -> bool {
        self.state().faults.remove(&id).is_some()
    }

    pub fn clear(&self) {
        self.state().faults.clear();
    }

    /// What is to be done to a request, counted.
    pub fn take(&self, asker: Asker<'_>, info: &RequestInfo) -> Option<Effect> {
        let mut state = self.state();
        let meant = |counted: &&mut Counted| counted.fault.suits(info) && counted.fault.target.matches(asker, info);
        let mut faults = state.faults.values_mut().filter(meant);
        faults.find_map(|counted| counted.turn().then(|| counted.fault.effect.clone()))
    }

    /// Notes a watch, so that it can be ended.
    pub fn enter(&self, asker: Asker<'_>, info: &Arc<RequestInfo>) -> WatchEntry {
        let entry = WatchEntry { end: CancellationToken::new(), alive: Arc::new(()) };
        let mut state = self.state();
        if state.watches.len() >= state.sweep_at {
            state.watches.retain(|watch| watch.alive.strong_count() > 0);
            state.sweep_at = (state.watches.len() * 2).max(64);
        }
        let alive = Arc::downgrade(&entry.alive);
        let (user, is_server) = (asker.user.to_owned(), asker.is_server);
        state.watches.push(OpenWatch { user, is_server, info: info.clone(), end: entry.end.clone(), alive });
        entry
    }
}

impl OpenWatch {
    fn asker(&self) -> Asker<'_> {
        Asker { user: &self.user, is_server: self.is_server }
    }
}

impl Counted {
    /// Whether this request is one to act on.
    fn turn(&mut self) -> bool {
        self.seen += 1;
        let acts = self.seen > self.fault.skip && self.fault.times.is_none_or(|times| self.hits < times);
        self.hits += u64::from(acts);
        acts
    }
}

impl FaultReport {
    /// As it was sent, with its id and how often it acted.
    pub fn to_value(&self) -> Value {
        let mut value = self.fault.to_value();
        let map = value.make_object();
        map.insert("id", self.id.to_string().as_str());
        map.insert("seen", self.seen as i64);
        map.insert("hits", self.hits as i64);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Asker<'_> = Asker { user: "alice", is_server: false };

    fn info(verb: &str, resource: &str, name: &str) -> RequestInfo {
        RequestInfo {
            is_resource_request: true,
            verb: verb.into(),
            resource: resource.into(),
            namespace: "default".into(),
            name: name.into(),
            ..RequestInfo::default()
        }
    }

    fn fault(text: &str) -> Fault {
        Fault::from_value(&kubelith_codec::json::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn faults_act_in_order_and_as_often_as_they_should() {
        let faults = Faults::default();
        let first = fault(r#"{"verbs":["update"],"resource":"pods","name":"x","times":2,"answer":{"code":409}}"#);
        let second = fault(r#"{"resource":"pods","skip":1,"answer":{"code":500}}"#);
        let (one, two) = (faults.add(first.clone()).unwrap(), faults.add(second).unwrap());
        let code = |verb: &str, resource: &str, name: &str| match faults.take(ALICE, &info(verb, resource, name)) {
            Some(Effect::Answer(answer)) => answer.code,
            other => other.map_or(0, |_| 1),
        };
        assert_eq!(code("update", "pods", "x"), 409);
        assert_eq!(code("update", "pods", "y"), 0, "the second skips one");
        assert_eq!(code("update", "services", "x"), 0);
        assert_eq!(code("update", "pods", "x"), 409);
        assert_eq!(code("update", "pods", "x"), 500);
        assert_eq!((faults.hits(one), faults.hits(two)), (Some(2), Some(1)));
        let listed = faults.list();
        assert_eq!((listed[0].fault.clone(), listed[0].hits, listed[1].seen), (first, 2, 2));
        assert!(faults.remove(two) && !faults.remove(two));
        faults.clear();
        assert!(faults.list().is_empty());
    }

    #[test]
    fn open_watches_are_ended() {
        let faults = Faults::default();
        let watch = |name: &str| faults.enter(ALICE, &Arc::new(info("watch", name, "")));
        let (pods, services, gone) = (watch("pods"), watch("services"), watch("pods"));
        drop(gone);
        let id = faults.add(fault(r#"{"resource":"pods","endWatch":true,"times":1}"#)).unwrap();
        assert!(pods.end.is_cancelled() && !services.end.is_cancelled());
        assert_eq!(faults.hits(id), Some(1));
        assert_eq!(faults.take(ALICE, &info("watch", "pods", "")), None, "it had one turn");
    }

    #[test]
    fn a_fault_reads_as_it_was_written() {
        for text in [
            r#"{"answer":{"code":409,"message":"no","reason":"Conflict"},"times":3,"verbs":["update","patch"]}"#,
            r#"{"delay":"2s","namespace":"a","user":"alice"}"#,
            r#"{"delayEvents":"1m30s","group":"apps","resource":"deployments"}"#,
            r#"{"expireWatch":true,"resource":"pods"}"#,
            r#"{"endWatch":true,"skip":2}"#,
            r#"{"resource":"pods","staleBy":5}"#,
            r#"{"answerAfter":{"code":504},"subresource":"status"}"#,
            r#"{"failAdmission":"webhook said no"}"#,
        ] {
            let read = fault(text);
            assert_eq!(String::from_utf8(kubelith_codec::json::to_vec(&read.to_value())).unwrap(), text);
            assert_eq!(Fault::from_value(&read.to_value()).unwrap(), read);
        }
        let wrong = |text: &str| {
            let value = kubelith_codec::json::parse(text.as_bytes()).unwrap();
            Fault::from_value(&value).unwrap_err()
        };
        let effects = "one of answer, answerAfter, delay, delayEvents, expireWatch, endWatch, staleBy and failAdmission is needed";
        assert_eq!(wrong("{}"), effects);
        assert_eq!(wrong(r#"{"delay":"1s","endWatch":true}"#), effects);
        assert_eq!(wrong(r#"{"delay":"x"}"#), "delay: \"x\" is no duration");
        assert_eq!(wrong(r#"{"endWatch":true,"verb":"get"}"#), "unknown field \"verb\"");
        assert_eq!(wrong(r#"{"answer":{"code":200}}"#), "answer.code: must be an error, from 400 to 599");
        assert_eq!(wrong("[]"), "a fault is an object");
    }
}
