//! Events: what a controller tells users about an object. They are a service; one that cannot be written is logged.

mod correlate;

use correlate::{Correlator, Entry, Occurrence};
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef};
use std::sync::{Arc, Mutex};

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
    made_up: MadeUp,
    component: &'static str,
    /// Shared by the copies of a recorder.
    correlator: Arc<Mutex<Correlator>>,
}

impl Recorder {
    pub fn new(client: LoopbackClient, clock: Arc<dyn Clock>, made_up: MadeUp, component: &'static str) -> Recorder {
        Recorder { client, clock, made_up, component, correlator: Arc::default() }
    }

    pub async fn normal(&self, subject: &Subject, reason: &str, message: &str) {
        self.record(subject, "Normal", reason, message).await;
    }

    pub async fn warning(&self, subject: &Subject, reason: &str, message: &str) {
        self.record(subject, "Warning", reason, message).await;
    }

    async fn record(&self, subject: &Subject, kind: &str, reason: &str, message: &str) {
        let now = self.clock.now();
        let what = Occurrence { component: self.component, subject, kind, reason, message };
        let bits = self.made_up.bits(&["event", &subject.namespace, &subject.name, reason]);
        let name = format!("{}.{bits:016x}", subject.name);
        let entry = self.correlator.lock().expect("no panic under this lock").see(what, name, now);
        let Some(entry) = entry else { return };
        // Those of objects without a namespace are kept in this one.
        let namespace = if subject.namespace.is_empty() { "default" } else { &subject.namespace };
        let written = match entry.count {
            1 => self.create(what, namespace, &entry, &now.rfc3339()).await,
            _ => match self.count(namespace, &entry, &now.rfc3339()).await {
                // It had its time.
                Err(status) if status.is_not_found() => self.create(what, namespace, &entry, &now.rfc3339()).await,
                outcome => outcome,
            },
        };
        if let Err(why) = written {
            tracing::warn!(reason, object = subject.name, err = why.message, "event not written");
        }
    }

    async fn count(&self, namespace: &str, entry: &Entry, now: &str) -> Result<(), Status> {
        let patch = Value::from([
            ("count", Value::Int(entry.count)),
            ("lastTimestamp", Value::from(now)),
            ("message", Value::from(entry.message.as_str())),
        ]);
        let events = GroupVersionResource::new("", "v1", "events");
        let target = ResourceRef::new(&events).namespace(namespace).name(&entry.name);
        self.client.patch(&target, PatchType::Strategic, &patch).await.map(drop)
    }

    async fn create(&self, what: Occurrence<'_>, namespace: &str, entry: &Entry, now: &str) -> Result<(), Status> {
        let subject = what.subject;
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
            ("metadata", Value::from([("name", entry.name.as_str()), ("namespace", namespace)])),
            ("involvedObject", about),
            ("reason", what.reason.into()),
            ("message", entry.message.as_str().into()),
            ("type", what.kind.into()),
            ("source", Value::from([("component", self.component)])),
            ("reportingComponent", self.component.into()),
            ("firstTimestamp", Value::from(entry.first.rfc3339())),
            ("lastTimestamp", Value::from(now)),
            ("count", Value::Int(entry.count)),
        ]);
        let events = GroupVersionResource::new("", "v1", "events");
        self.client.create(&ResourceRef::new(&events).namespace(namespace), &event).await.map(drop)
    }
}
