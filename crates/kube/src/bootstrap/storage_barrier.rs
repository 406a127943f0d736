//! With StorageVersion objects nothing may be stored in a version that this server has not told of yet: until it has, writes
//! of built-in resources are refused, and those of this server itself wait.

use crate::Resources;
use kubelith_http::{BoxHandler, Handler, Reply, Request, RequestInfo, negotiated};
use kubelith_meta::{GroupResource, Status};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a write of our own waits. Telling of all resources takes a second or two.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was told, and what not yet.
pub struct StorageBarrier {
    /// Resources that nobody was told of, with why that failed last.
    pending: Mutex<BTreeMap<GroupResource, Option<String>>>,
    changed: Notify,
}

impl StorageBarrier {
    pub fn new(resources: &Resources) -> Arc<StorageBarrier> {
        let stored = resources.keys().map(|(group, plural)| (GroupResource::new(group.clone(), plural.clone()), None));
        Arc::new(StorageBarrier { pending: Mutex::new(stored.collect()), changed: Notify::new() })
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<GroupResource, Option<String>>> {
        self.pending.lock().expect("no panic under this lock")
    }

    /// Everybody knows by now how it is stored.
    pub(super) fn told(&self, resource: &GroupResource) {
        self.pending().remove(resource);
        self.changed.notify_waiters();
    }

    pub(super) fn failed(&self, resource: &GroupResource, why: &Status) {
        if let Some(last) = self.pending().get_mut(resource) {
            *last = Some(why.message.clone());
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.pending().is_empty()
    }

    /// Passes on what may be passed on.
    pub fn before(self: Arc<Self>, next: BoxHandler) -> BoxHandler {
        Arc::new(Link { barrier: self, next })
    }

    /// Why a write of this resource has to wait.
    fn why(&self, resource: &GroupResource) -> Option<Status> {
        let pending = self.pending();
        let error = pending.get(resource)?.as_deref().unwrap_or("<nil>");
        Some(Status::service_unavailable(format!(
            "wait for storage version registration to complete for resource: {resource}, last seen error: {error}"
        )))
    }

    async fn wait(&self, resource: &GroupResource) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.why(resource).is_none() {
                return;
            }
            changed.await;
        }
    }
}

struct Link {
    barrier: Arc<StorageBarrier>,
    next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let own = request.connection().is_none();
        let info = request.info();
        if !info.is_resource_request || is_needed_before(info, own) {
            return self.next.handle(request);
        }
        let resource = GroupResource::new(info.group.clone(), info.resource.clone());
        let Some(why) = self.barrier.why(&resource) else { return self.next.handle(request) };
        if !own {
            return Reply::Ready(negotiated::status(request.headers(), false, &why));
        }
        let (barrier, next) = (self.barrier.clone(), self.next.clone());
        Reply::pending(async move {
            match tokio::time::timeout(PATIENCE, barrier.wait(&resource)).await {
                Ok(()) => next.handle(request).await,
                Err(_) => negotiated::status(request.headers(), false, &why),
            }
        })
    }
}

/// Reads, and what telling depends on: the objects themselves, and the leases of servers in their namespace.
fn is_needed_before(info: &RequestInfo, own: bool) -> bool {
    match (info.group.as_str(), info.resource.as_str()) {
        _ if matches!(info.verb.as_str(), "get" | "list" | "watch") => true,
        ("internal.apiserver.k8s.io", "storageversions") => true,
        ("coordination.k8s.io", "leases") => info.namespace == super::KUBE_SYSTEM,
        ("", "namespaces") => own && info.verb == "create",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(verb: &str, group: &str, resource: &str, namespace: &str) -> RequestInfo {
        RequestInfo {
            is_resource_request: true,
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            ..RequestInfo::default()
        }
    }

    #[test]
    fn what_telling_depends_on_passes() {
        for (request, own, passes) in [
            (info("list", "", "pods", "a"), false, true),
            (info("create", "", "pods", "a"), false, false),
            (info("create", "", "pods", "a"), true, false),
            (info("update", "internal.apiserver.k8s.io", "storageversions", ""), false, true),
            (info("update", "coordination.k8s.io", "leases", "kube-system"), false, true),
            (info("update", "coordination.k8s.io", "leases", "a"), false, false),
            (info("create", "", "namespaces", "a"), true, true),
            (info("update", "", "namespaces", "a"), true, false),
            (info("create", "", "namespaces", "a"), false, false),
        ] {
            assert_eq!(is_needed_before(&request, own), passes, "{request:?}");
        }
    }

    #[tokio::test]
    async fn a_resource_waits_until_it_was_told_of() {
        let (pods, nodes) = (GroupResource::new("", "pods"), GroupResource::new("", "nodes"));
        let pending = BTreeMap::from([(pods.clone(), None), (nodes.clone(), None)]);
        let barrier = Arc::new(StorageBarrier { pending: Mutex::new(pending), changed: Notify::new() });
        let said = |resource: &GroupResource| barrier.why(resource).map(|why| (why.code, why.message));
        let want = "wait for storage version registration to complete for resource: pods, last seen error: ";
        assert_eq!(said(&pods), Some((503, format!("{want}<nil>"))));
        barrier.failed(&pods, &Status::internal_error("no"));
        assert_eq!(said(&pods), Some((503, format!("{want}Internal error occurred: no"))));
        assert_eq!(said(&GroupResource::new("example.com", "widgets")), None, "it is not ours to tell of");
        let waiting = tokio::spawn({
            let (barrier, pods) = (barrier.clone(), pods.clone());
            async move { barrier.wait(&pods).await }
        });
        barrier.told(&nodes);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished() && !barrier.is_done());
        barrier.told(&pods);
        waiting.await.unwrap();
        assert!(barrier.is_done() && said(&pods).is_none());
    }
}
