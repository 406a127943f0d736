//! The system namespaces. They cannot stay away: deleted ones come back within the minute.

use super::{Bootstrap, Own, ensure};
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::lifecycle::PostStartHook;
use std::sync::Arc;
use std::time::Duration;

const SYSTEM: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "default"];
const AGAIN: Duration = Duration::from_secs(60);

pub fn first_objects() -> impl Iterator<Item = Own> {
    SYSTEM.into_iter().map(|name| Own::new(resource(), object(name)))
}

fn resource() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "namespaces")
}

fn object(name: &str) -> Value {
    Value::from([("metadata", Value::from([("name", name)]))])
}

pub fn hook(config: &Arc<Bootstrap>) -> PostStartHook {
    let beginning = config.beginning;
    PostStartHook::new("start-system-namespaces-controller", move |context| async move {
        let client = context.client.clone();
        let all = move || {
            let client = client.clone();
            async move {
                let resource = resource();
                let made = SYSTEM.map(|name| {
                    let (client, resource) = (&client, &resource);
                    async move { ensure(client, resource, &object(name)).await }
                });
                futures::future::try_join_all(made).await.map(drop).map_err(|e| e.to_string())
            }
        };
        let mut made = match beginning.is_left_to(context.begun) {
            true => all().await,
            false => Ok(()),
        };
        context.tasks.spawn_until_stopped("system-namespaces", async move {
            loop {
                if let Err(why) = made {
                    tracing::warn!(%why, "system namespaces");
                }
                tokio::time::sleep(AGAIN).await;
                made = all().await;
            }
        });
        Ok(())
    })
}
