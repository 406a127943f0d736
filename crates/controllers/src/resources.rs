//! Has a controller look again when resources come and go: custom ones, and those of other servers.

use crate::Context;
use kubelith_meta::Str;
use kubelith_server::controller::{Controller, Next};
use std::time::Duration;

/// Against what changes without a word to anybody.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
const ALL: &str = "all";

/// `look` at the beginning, and whenever discovery or a definition has changed: a definition may get another watch cache
/// while discovery stays as it is.
pub fn when_resources_change<F>(context: &Context, name: &'static str, look: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let reconcile = move |_: Str| {
        let looking = look();
        async move {
            looking.await;
            Ok::<Next, String>(Next::Done)
        }
    };
    // Taken before the first look, so that no change falls between the two.
    let mut changes = context.world.discovery_changes();
    let mut controller = Controller::new(name, reconcile).key(ALL).every(LOOK_AGAIN);
    if let Some(definitions) = context.world.cache("apiextensions.k8s.io", "customresourcedefinitions") {
        controller = controller.watches(&definitions, |_| vec![ALL.into()]);
    }
    let running = controller.start(&context.tasks);
    context.tasks.spawn_until_stopped(name, async move {
        while changes.changed().await.is_ok() {
            running.add(ALL);
        }
    });
}
