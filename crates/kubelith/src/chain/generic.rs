//! What every server of the chain has, whatever it serves: contributed once, by the innermost.
//!
//! In health it shows, in this order: the checks of the store, then `start-apiserver-admission-initializer`,
//! `generic-apiserver-start-informers`, `priority-and-fairness-config-consumer`, `priority-and-fairness-filter`,
//! `storage-object-count-tracker-hook`.

use super::Shared;
use kubelith_server::Delegate;
use kubelith_server::health::Check;
use kubelith_server::lifecycle::PostStartHook;
use kubelith_store::Store;
use std::sync::Arc;
use std::time::Duration;

pub fn hooks(shared: &Shared<'_>, next: Delegate) -> Delegate {
    let store = || shared.hub.store().clone();
    let generic = &shared.options.generic;
    let next = next
        .check(store_check("etcd", store(), generic.etcd_health_timeout))
        .readiness_check(store_check("etcd-readiness", store(), generic.etcd_ready_timeout))
        // Watch caches and admission are complete before anything is served, so there is nothing left to wait for.
        .readiness_check(Check::passing("informer-sync"))
        .post_start_hook(done("start-apiserver-admission-initializer"))
        .post_start_hook(done("generic-apiserver-start-informers"));
    shared.frame.flow_control.hooks(&shared.resources, next)
}

fn done(name: &'static str) -> PostStartHook {
    PostStartHook::new(name, |_| async { Ok(()) })
}

/// Whether the store answers in time. It is called etcd, whatever it is: monitoring knows that name.
fn store_check(name: &'static str, store: Arc<dyn Store>, limit: Duration) -> Check {
    Check::new(name, move || {
        let store = store.clone();
        async move {
            match tokio::time::timeout(limit, store.health()).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(why)) => Err(format!("error getting data from etcd: {why}")),
                Err(_) => Err("error getting data from etcd: context deadline exceeded".into()),
            }
        }
    })
}
