//! What every server of the chain has, whatever it serves: contributed once, by the innermost.
//!
//! In health it shows, behind the checks of the store and in this order: `start-apiserver-admission-initializer`,
//! `generic-apiserver-start-informers`, `priority-and-fairness-config-consumer`, `priority-and-fairness-filter`,
//! `storage-object-count-tracker-hook`.

use super::Shared;
use crate::access::files::every_interval;
use kubelith_server::Delegate;
use kubelith_server::health::Check;
use kubelith_server::lifecycle::PostStartHook;

/// What parts of every server follow: without one of them they wait for it for ever, and the server is never ready.
const FOLLOWED: [(&str, &str); 5] = [
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "servicecidrs"),
];

/// Watch caches and admission are complete before anything is served, so there is nothing left to wait for here.
pub fn hooks(shared: &Shared<'_>, next: Delegate) -> Delegate {
    let is_served =
        |(group, plural): &(&str, &str)| shared.resources.contains_key(&((*group).into(), (*plural).into()));
    let missing = FOLLOWED.into_iter().find(|resource| !is_served(resource));
    let synced = move || match missing {
        None => Ok(()),
        Some((group, plural)) => Err(format!("{plural}.{group} are not served")),
    };
    let next = next
        .readiness_check(Check::sync("informer-sync", synced))
        .post_start_hook(follow_manifests(shared))
        .post_start_hook(done("generic-apiserver-start-informers"));
    shared.frame.flow_control.hooks(&shared.resources, next)
}

/// Reads the manifests of admission again for as long as the server runs.
fn follow_manifests(shared: &Shared<'_>) -> PostStartHook {
    let manifests = shared.manifests.clone();
    PostStartHook::new("start-apiserver-admission-initializer", move |context| async move {
        for manifests in manifests {
            every_interval(&context.tasks, manifests.plugin(), move || manifests.reload());
        }
        Ok(())
    })
}

fn done(name: &'static str) -> PostStartHook {
    PostStartHook::new(name, |_| async { Ok(()) })
}
