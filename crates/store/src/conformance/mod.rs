//! One suite of semantics for every implementation of [`Store`]. Failing is panicking, as in any test.
//!
//! Cases share one store, each below a prefix of its own, and make no assumption about the revision they
//! begin at, so that the suite also runs against an etcd that lives on.

mod history;
mod model;
mod reads;
mod watches;
mod writes;

use crate::model::{Expect, KeyRange, KeyValue, RangeRequest, Revision};
use crate::traits::Store;
use crate::watch::{Event, Watch, WatchRequest};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Nothing in the suite takes this long; a wait that does is a failure.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs every case against `store` and closes it at the end.
pub async fn run(store: Arc<dyn Store>) {
    let at = |name: &'static str| {
        // Shown with a failing test's output: which case it was.
        println!("conformance: {name}");
        Bench { store: store.clone(), prefix: format!("/conformance/{name}/") }
    };
    writes::create_only_when_absent(at("create")).await;
    writes::update_only_at_the_expected_revision(at("update")).await;
    writes::revision_zero_is_absence(at("zero")).await;
    writes::unguarded_put(at("put-any")).await;
    writes::delete_guards(at("delete")).await;
    writes::deleting_and_making_again(at("recreate")).await;
    writes::odd_bytes(at("bytes")).await;
    writes::large_values(at("large")).await;
    writes::concurrent_increments(at("increments")).await;
    writes::expiry(at("expiry")).await;
    reads::order_and_bounds(at("order")).await;
    reads::limits_and_pages(at("pages")).await;
    reads::keys_and_counts(at("keys")).await;
    reads::past_revisions(at("past")).await;
    reads::pages_of_one_revision(at("stable-pages")).await;
    reads::unknown_revisions(at("unknown")).await;
    watches::live_events(at("live")).await;
    watches::from_the_past(at("from-past")).await;
    watches::long_history(at("long-history")).await;
    watches::without_previous(at("without-previous")).await;
    watches::only_the_range(at("only-range")).await;
    watches::progress_on_request(at("progress")).await;
    watches::from_the_future(at("future")).await;
    watches::many_watchers_see_the_same(at("many")).await;
    model::random_operations(at("model")).await;
    history::compaction(at("compaction")).await;
    history::closing(at("closing")).await;
}

/// A case's corner of the store.
#[derive(Clone)]
struct Bench {
    store: Arc<dyn Store>,
    prefix: String,
}

impl Bench {
    fn key(&self, name: &str) -> Bytes {
        format!("{}{name}", self.prefix).into()
    }

    fn everything(&self) -> KeyRange {
        KeyRange::prefix(self.prefix.clone())
    }

    async fn put(&self, name: &str, value: &str) -> Revision {
        let value = Bytes::copy_from_slice(value.as_bytes());
        self.store.put(self.key(name), value, Expect::Any, None).await.expect("an unguarded put")
    }

    async fn delete(&self, name: &str) -> Revision {
        self.store.delete(self.key(name), Expect::Any).await.expect("deleting a key that exists").revision
    }

    async fn get(&self, name: &str) -> Option<KeyValue> {
        self.store.get(self.key(name), None).await.expect("a get").item
    }

    async fn list(&self, at: Option<Revision>) -> Vec<(String, String)> {
        let mut request = RangeRequest::new(self.everything());
        request.at = at;
        let response = self.store.range(request).await.expect("a range");
        assert_eq!(response.count, response.items.len() as u64);
        assert!(!response.more);
        response.items.iter().map(|kv| self.pair(kv)).collect()
    }

    /// Key (without the prefix) and value as text.
    fn pair(&self, kv: &KeyValue) -> (String, String) {
        (self.name(&kv.key), String::from_utf8_lossy(&kv.value).into_owned())
    }

    fn name(&self, key: &[u8]) -> String {
        let key = key.strip_prefix(self.prefix.as_bytes()).expect("a key of this case");
        String::from_utf8_lossy(key).into_owned()
    }

    async fn watch(&self, after: Revision) -> Watch {
        self.store.watch(WatchRequest::new(self.everything(), after)).await.expect("a watch")
    }

    async fn revision(&self) -> Revision {
        self.store.current_revision().await.expect("the revision")
    }

    /// An event in one line: `+name=value`, `~name=value (old)`, `-name (old)`.
    fn line(&self, event: &Event) -> String {
        let name = self.name(event.key());
        let old = event.prev().map(|kv| self.pair(kv).1);
        match (event, old) {
            (Event::Put { kv, .. }, None) => format!("+{name}={}", self.pair(kv).1),
            (Event::Put { kv, .. }, Some(old)) => format!("~{name}={} ({old})", self.pair(kv).1),
            (Event::Delete { .. }, old) => format!("-{name} ({})", old.unwrap_or("?".into())),
        }
    }

    /// The next `count` events as lines; revisions must rise and batches must be complete.
    async fn events(&self, watch: &mut Watch, count: usize) -> Vec<String> {
        self.collect(watch, count).await.iter().map(|event| self.line(event)).collect()
    }

    async fn collect(&self, watch: &mut Watch, count: usize) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        while events.len() < count {
            let next = tokio::time::timeout(PATIENCE, watch.next()).await.expect("events in time");
            let batch = next.expect("a watch that goes on").expect("a watch without error");
            for event in batch.events {
                if let Some(last) = events.last() {
                    assert!(event.revision() > last.revision(), "events out of order");
                }
                assert!(event.revision() <= batch.revision, "a batch below its own events");
                events.push(event);
            }
        }
        assert_eq!(events.len(), count, "more events than expected");
        events
    }
}
