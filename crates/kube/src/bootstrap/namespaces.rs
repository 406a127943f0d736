//! The system namespaces. They cannot stay away: deleted ones come back within the minute.

use super::ensure;
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::lifecycle::{Begun, PostStartHook};
use std::time::Duration;

const SYSTEM: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "default"];
const AGAIN: Duration = Duration::from_secs(60);

pub fn hook() -> PostStartHook {
    PostStartHook::new("start-system-namespaces-controller", |context| async move {
        let client = context.client.clone();
        let all = move || {
            let client = client.clone();
            async move {
                let resource = GroupVersionResource::new("", "v1", "namespaces");
                let made = SYSTEM.map(|name| {
                    let object = Value::from([("metadata", Value::from([("name", name)]))]);
                    let (client, resource) = (&client, &resource);
                    async move { ensure(client, resource, &object).await }
                });
                futures::future::try_join_all(made).await.map(drop).map_err(|e| e.to_string())
            }
        };
        let mut made = match context.begun {
            Begun::Anew => all().await,
            Begun::AsCopy => Ok(()),
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
