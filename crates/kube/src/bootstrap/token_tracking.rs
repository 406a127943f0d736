//! The config map that says since when uses of legacy service account tokens are recorded. Others read it to tell a
//! token that was never used from one that was used before anybody looked.

use super::{Bootstrap, KUBE_SYSTEM, ensure_namespace};
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::ResourceRef;
use kubelith_store::cache::ResourceCache;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";
/// Between two creations: a server of an older release that deletes it must not be fought.
const CREATE_AGAIN: Duration = Duration::from_secs(30 * 60);

pub fn hook(config: &Arc<Bootstrap>) -> PostStartHook {
    let config = config.clone();
    PostStartHook::new("start-legacy-token-tracking-controller", |context| async move {
        let Some(cache) = config.cache("", "configmaps") else { return Ok(()) };
        let key = format!("{KUBE_SYSTEM}/{NAME}");
        let tracking = Arc::new(Tracking { config, cache: cache.clone(), created: Mutex::new(None) });
        let (first, watched) = (key.clone(), key);
        Controller::new("legacy-token-tracking", move |key| {
            let tracking = tracking.clone();
            async move { tracking.reconcile(&key).await }
        })
        .key(first)
        .watches(&cache, move |change| {
            let ours = *change.object().key == *watched;
            ours.then(|| change.key()).into_iter().collect()
        })
        .metrics(&context.metrics)
        .start(&context.tasks);
        Ok(())
    })
}

struct Tracking {
    config: Arc<Bootstrap>,
    cache: Arc<ResourceCache>,
    created: Mutex<Option<Instant>>,
}

impl Tracking {
    async fn reconcile(&self, key: &Str) -> Result<Next, Status> {
        let resource = GroupVersionResource::new("", "v1", "configmaps");
        let today = self.config.clock.now().rfc3339()[..10].to_owned();
        let client = &self.config.client;
        let Some(stored) = self.cache.get(key) else {
            if let Some(pause) = self.pause() {
                return Ok(Next::After(pause));
            }
            ensure_namespace(client, KUBE_SYSTEM).await?;
            let object = Value::from([
                ("metadata", Value::from([("name", NAME), ("namespace", KUBE_SYSTEM)])),
                ("data", Value::from([(SINCE, today)])),
            ]);
            match client.create(&ResourceRef::new(&resource).namespace(KUBE_SYSTEM), &object).await {
                Err(status) if !status.is_already_exists() => return Err(status),
                _ => *self.created.lock().expect("no panic under this lock") = Some(Instant::now()),
            }
            return Ok(Next::Done);
        };
        let mut object = kubelith_codec::json::parse(&stored.json()).unwrap_or_default();
        if !is_date(object.str_at(&["data", SINCE])) {
            object.set_at(&["data", SINCE], today.into());
            match client.update(&ResourceRef::new(&resource).namespace(KUBE_SYSTEM).name(NAME), &object).await {
                Err(status) if !(status.is_not_found() || status.is_conflict()) => return Err(status),
                _ => {}
            }
        }
        Ok(Next::Done)
    }

    fn pause(&self) -> Option<Duration> {
        let created = (*self.created.lock().expect("no panic under this lock"))?;
        CREATE_AGAIN.checked_sub(created.elapsed()).filter(|left| !left.is_zero())
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && kubelith_meta::time::Time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        for (text, good) in [("2026-01-31", true), ("2026-02-30", false), ("", false), ("2026-1-1", false)] {
            assert_eq!(super::is_date(text), good, "{text}");
        }
    }
}
