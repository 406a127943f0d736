//! What a request will cost, from what it asks for, how large the resource is and who watches it.

use super::ObjectCounts;
use super::config::Schema;
use kubelith_fairness::watches::{WatchCounts, Watched};
use kubelith_fairness::work::{self, Listing, Work};
use kubelith_http::request_info::is_true;
use kubelith_http::{Request, RequestInfo, query};
use kubelith_meta::selector::FieldSelector;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

/// The open watches of this server.
#[derive(Clone, Default)]
pub struct Watches {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Spares writes the lock while nobody watches.
    open: AtomicUsize,
    counts: RwLock<WatchCounts>,
}

/// A watch that counts until it is dropped.
pub struct Watching {
    watches: Watches,
    watched: Option<Watched>,
}

impl Watches {
    pub fn register(&self, request: &Request) -> Watching {
        let info = request.info();
        // A kubelet's watch of its own pods sees few of the writes: the index keeps the others from it.
        let by_node = info.resource == "pods" && names_a_node(request);
        let watched = (!by_node).then(|| watched(info));
        if let Some(watched) = &watched {
            self.inner.open.fetch_add(1, Ordering::Relaxed);
            self.inner.counts.write().unwrap_or_else(|e| e.into_inner()).add(watched.clone());
        }
        Watching { watches: self.clone(), watched }
    }

    fn interested_in(&self, info: &RequestInfo) -> u32 {
        if self.inner.open.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.inner.counts.read().unwrap_or_else(|e| e.into_inner()).interested_in(&watched(info))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(watched) = &self.watched {
            self.watches.inner.open.fetch_sub(1, Ordering::Relaxed);
            self.watches.inner.counts.write().unwrap_or_else(|e| e.into_inner()).remove(watched);
        }
    }
}

fn watched(info: &RequestInfo) -> Watched {
    Watched {
        group: info.group.clone(),
        resource: info.resource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
    }
}

fn names_a_node(request: &Request) -> bool {
    let Some(selector) = query::first(request.uri().query(), "fieldSelector") else { return false };
    let selector = FieldSelector::parse(&selector).ok();
    selector.is_some_and(|selector| selector.exact_value("spec.nodeName").is_some_and(|node| !node.is_empty()))
}

pub fn work(request: &Request, schema: &Schema, counts: &ObjectCounts, watches: &Watches) -> Work {
    let info = request.info();
    let max = || schema.level.max_request_seats.load(Ordering::Relaxed);
    match info.verb.as_str() {
        "list" | "watch" => list_work(request, counts, max()),
        "create" | "update" | "patch" | "delete" => {
            // Nobody sees a token being made.
            if info.resource == "serviceaccounts" && info.subresource == "token" {
                return Work::ONE;
            }
            let count = watches.interested_in(info);
            schema.metrics().watch_counts.observe(count.into());
            work::write_work(count, max())
        }
        _ => Work::ONE,
    }
}

fn list_work(request: &Request, counts: &ObjectCounts, max: u32) -> Work {
    let info = request.info();
    let query = request.uri().query().unwrap_or("");
    let mut version = None;
    let mut version_match = None;
    let mut listing = Listing { watch: info.verb == "watch", single: !info.name.is_empty(), ..Listing::default() };
    for (key, value) in query::pairs(query) {
        match &*key {
            "limit" => match value.parse() {
                Ok(limit) => listing.limit = limit,
                Err(_) => listing.malformed = true,
            },
            "timeoutSeconds" => listing.malformed |= value.parse::<i64>().is_err(),
            "continue" => listing.has_continue = !value.is_empty(),
            "fieldSelector" | "labelSelector" => listing.has_selector |= !value.is_empty(),
            "resourceVersion" => version = version.or(Some(value)),
            "resourceVersionMatch" => version_match = version_match.or(Some(value)),
            "sendInitialEvents" => listing.send_initial_events = is_true(&value),
            _ => {}
        }
    }
    listing.resource_version = version.as_deref().unwrap_or("");
    listing.resource_version_match = version_match.as_deref().unwrap_or("");
    listing.work(counts.of(&info.group, &info.resource), max)
}
