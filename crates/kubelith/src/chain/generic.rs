//! What every server of the chain has, whatever it serves: contributed once, by the innermost.
//!
//! In health it shows, behind the checks of the store and in this order: `start-apiserver-admission-initializer`,
//! `generic-apiserver-start-informers`, `priority-and-fairness-config-consumer`, `priority-and-fairness-filter`,
//! `storage-object-count-tracker-hook`.

use super::Shared;
use kubelith_server::Delegate;
use kubelith_server::health::Check;
use kubelith_server::lifecycle::PostStartHook;

/// Watch caches and admission are complete before anything is served, so there is nothing left to wait for here.
pub fn hooks(shared: &Shared<'_>, next: Delegate) -> Delegate {
    let next = next
        .readiness_check(Check::passing("informer-sync"))
        .post_start_hook(done("start-apiserver-admission-initializer"))
        .post_start_hook(done("generic-apiserver-start-informers"));
    shared.frame.flow_control.hooks(&shared.resources, next)
}

fn done(name: &'static str) -> PostStartHook {
    PostStartHook::new(name, |_| async { Ok(()) })
}
