//! Events: what a controller tells users about an object. They are a service; one that cannot be written is logged.

use kubelith_meta::random;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use std::sync::Arc;

/// What an event is about.
#[derive(Debug, Clone)]
pub struct Subject {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

impl Subject {
    pub fn of(api_version: &str, kind: &str, object: &Value) -> Subject {
        let meta = object.meta();
        Subject {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: meta.namespace().to_owned(),
            name: meta.name().to_owned(),
            uid: meta.uid().to_owned(),
            resource_version: meta.resource_version().to_owned(),
        }
    }
}

#[derive(Clone)]
pub struct Recorder {
    client: LoopbackClient,
    clock: Arc<dyn Clock>,
    component: &'static str,
}

impl Recorder {
    pub fn new(client: LoopbackClient, clock: Arc<dyn Clock>, component: &'static str) -> Recorder {
        Recorder { client, clock, component }
    }

    pub async fn normal(&self, subject: &Subject, reason: &str, message: &str) {
        self.record(subject, "Normal", reason, message).await;
    }

    pub async fn warning(&self, subject: &Subject, reason: &str, message: &str) {
        self.record(subject, "Warning", reason, message).await;
    }

    async fn record(&self, subject: &Subject, kind: &str, reason: &str, message: &str) {
        let now = self.clock.now().rfc3339();
        // Those of objects without a namespace are kept in this one.
        let namespace = if subject.namespace.is_empty() { "default" } else { &subject.namespace };
        let name = format!("{}.{:016x}", subject.name, random::random_bits());
        let mut about = Value::object();
        for (field, value) in [
            ("apiVersion", &subject.api_version),
            ("kind", &subject.kind),
            ("name", &subject.name),
            ("namespace", &subject.namespace),
            ("resourceVersion", &subject.resource_version),
            ("uid", &subject.uid),
        ] {
            if !value.is_empty() {
                about.set_at(&[field], value.as_str().into());
            }
        }
        let event = Value::from([
            ("metadata", Value::from([("name", name.as_str()), ("namespace", namespace)])),
            ("involvedObject", about),
            ("reason", reason.into()),
            ("message", message.into()),
            ("type", kind.into()),
            ("source", Value::from([("component", self.component)])),
            ("reportingComponent", self.component.into()),
            ("firstTimestamp", Value::from(now.as_str())),
            ("lastTimestamp", Value::from(now.as_str())),
            ("count", 1.into()),
        ]);
        let events = GroupVersionResource::new("", "v1", "events");
        if let Err(why) = self.client.create(&ResourceRef::new(&events).namespace(namespace), &event).await {
            tracing::warn!(reason, object = subject.name, err = why.message, "event not written");
        }
    }
}
