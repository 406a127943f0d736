//! The two system priority classes.

use super::ensure;
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::lifecycle::{Begun, PostStartHook};
use std::time::Duration;
use tokio::time::Instant;

const AGAIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

const CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

pub fn hook() -> PostStartHook {
    PostStartHook::new("scheduling/bootstrap-system-priority-classes", |context| async move {
        if context.begun == Begun::AsCopy {
            return Ok(());
        }
        let resource = GroupVersionResource::new("scheduling.k8s.io", "v1", "priorityclasses");
        for (name, value, description) in CLASSES {
            let object = Value::from([
                ("metadata", Value::from([("name", name)])),
                ("value", Value::Int(value)),
                ("description", Value::from(description)),
            ]);
            let begun = Instant::now();
            while let Err(why) = ensure(&context.client, &resource, &object).await {
                if begun.elapsed() > PATIENCE {
                    return Err(format!("unable to add default system priority classes: {why}"));
                }
                tracing::warn!(%why, name, "unable to add a system priority class; will be tried again");
                tokio::time::sleep(AGAIN).await;
            }
        }
        Ok(())
    })
}
