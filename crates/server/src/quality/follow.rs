//! Keeps the classes as the ConfigMaps say. One that cannot be understood is not in force, and an Event says why.

use super::Quality;
use crate::controller::{Controller, Next};
use crate::lifecycle::PostStartHook;
use crate::loopback::{LoopbackClient, ResourceRef};
use kubelith_codec::json;
use kubelith_fairness::quality::Class;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const NAMESPACE: &str = "kube-system";
const LABEL: &str = "kubelith.dev/service-quality";
/// Longer complaints are cut: an Event's message is bounded.
const MAX_MESSAGE: usize = 1000;

/// Reads the classes there are and returns the hook that follows them from the start of the server on.
pub fn hook(quality: &Arc<Quality>, config_maps: Arc<ResourceCache>, clock: Arc<dyn Clock>) -> PostStartHook {
    for object in config_maps.snapshot().range(&format!("{NAMESPACE}/"), None).filter(|o| is_class(o)) {
        if let Ok(class) = read(object) {
            quality.put(class);
        }
    }
    let quality = quality.clone();
    PostStartHook::new("service-quality", move |context| async move {
        let follower = Arc::new(Follower {
            quality,
            config_maps: config_maps.clone(),
            client: context.client,
            clock,
            complained: Mutex::default(),
        });
        let reconcile = move |key: Str| {
            let follower = follower.clone();
            async move { follower.reconcile(&key).await }
        };
        Controller::new("service-quality", reconcile)
            .watches(&config_maps, |change| {
                let concerns = change.new.iter().chain(&change.old).any(is_class);
                if concerns { vec![change.key()] } else { Vec::new() }
            })
            .start(&context.tasks);
        Ok(())
    })
}

struct Follower {
    quality: Arc<Quality>,
    config_maps: Arc<ResourceCache>,
    client: LoopbackClient,
    clock: Arc<dyn Clock>,
    /// The revision of each bad ConfigMap about which there is an Event already.
    complained: Mutex<HashMap<Str, i64>>,
}

impl Follower {
    async fn reconcile(&self, key: &str) -> Result<Next, String> {
        let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
        let object = self.config_maps.get(key).filter(is_class);
        let Some(object) = object else {
            self.complained.lock().unwrap_or_else(|e| e.into_inner()).remove(name);
            self.quality.remove(name);
            return Ok(Next::Done);
        };
        let why = match read(&object) {
            Ok(class) => {
                self.quality.put(class);
                return Ok(Next::Done);
            }
            Err(why) => why.join("; "),
        };
        self.quality.invalid(name);
        tracing::warn!(class = name, why, "service quality class ignored");
        if self.is_new(name, object.revision)
            && let Err(status) = self.complain(&object, &why).await
        {
            self.complained.lock().unwrap_or_else(|e| e.into_inner()).remove(name);
            return Err(status);
        }
        Ok(Next::Done)
    }

    fn is_new(&self, name: &str, revision: i64) -> bool {
        let mut complained = self.complained.lock().unwrap_or_else(|e| e.into_inner());
        complained.insert(name.into(), revision) != Some(revision)
    }

    async fn complain(&self, object: &CachedObject, why: &str) -> Result<(), String> {
        let value = json::parse(&object.json()).map_err(|e| e.to_string())?;
        let now = self.clock.now().rfc3339();
        let end = (0..=MAX_MESSAGE.min(why.len())).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0);
        let text = |text: &str| Value::from(text);
        let event = Value::from([
            ("apiVersion", text("v1")),
            ("kind", text("Event")),
            (
                "metadata",
                Value::from([
                    ("name", Value::from(format!("{}.{:x}", object.name(), object.revision))),
                    ("namespace", text(NAMESPACE)),
                ]),
            ),
            (
                "involvedObject",
                Value::from([
                    ("apiVersion", text("v1")),
                    ("kind", text("ConfigMap")),
                    ("namespace", text(NAMESPACE)),
                    ("name", text(object.name())),
                    ("uid", text(value.str_at(&["metadata", "uid"]))),
                    ("resourceVersion", Value::from(object.revision.to_string())),
                ]),
            ),
            ("reason", text("InvalidServiceQuality")),
            ("message", Value::from(format!("This class is not in force: {}", &why[..end]))),
            ("type", text("Warning")),
            ("source", Value::from([("component", text("kube-apiserver"))])),
            ("firstTimestamp", Value::from(now.clone())),
            ("lastTimestamp", Value::from(now)),
            ("count", Value::from(1i64)),
        ]);
        let events = GroupVersionResource::new("", "v1", "events");
        let target = ResourceRef::new(&events).namespace(NAMESPACE);
        match self.client.create(&target, &event).await {
            // Another server saw it first.
            Err(status) if status.code != 409 => Err(status.message.to_string()),
            _ => Ok(()),
        }
    }
}

fn is_class(object: &Arc<CachedObject>) -> bool {
    object.namespace() == NAMESPACE && object.labels.iter().any(|(key, _)| key == LABEL)
}

fn read(object: &CachedObject) -> Result<Class, Vec<String>> {
    let value = json::parse(&object.json()).map_err(|e| vec![e.to_string()])?;
    let data = value.get("data").and_then(Value::as_object);
    let pairs = data.into_iter().flat_map(|data| data.iter()).map(|(key, value)| (key, value.as_str().unwrap_or("")));
    Class::parse(object.name(), pairs)
}
