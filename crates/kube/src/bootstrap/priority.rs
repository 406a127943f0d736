//! The two system priority classes.

use super::{Bootstrap, Own, ensure};
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::lifecycle::PostStartHook;
use std::sync::Arc;
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

pub fn first_objects() -> impl Iterator<Item = Own> {
    CLASSES.iter().map(|class| Own::new(resource(), object(class)))
}

fn resource() -> GroupVersionResource {
    GroupVersionResource::new("scheduling.k8s.io", "v1", "priorityclasses")
}

fn object(&(name, value, description): &(&str, i64, &str)) -> Value {
    Value::from([
        ("metadata", Value::from([("name", name)])),
        ("value", Value::Int(value)),
        ("description", Value::from(description)),
    ])
}

pub fn hook(config: &Arc<Bootstrap>) -> PostStartHook {
    let beginning = config.beginning;
    PostStartHook::new("scheduling/bootstrap-system-priority-classes", move |context| async move {
        if !beginning.is_left_to(context.begun) {
            return Ok(());
        }
        let resource = resource();
        for class in &CLASSES {
            let (name, object) = (class.0, object(class));
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
