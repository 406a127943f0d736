//! Keeps flow control as the stored objects say, and says on each flow schema whether the level it names exists.

use super::counts::REFRESH;
use super::{Fairness, Objects};
use crate::controller::{Controller, Next};
use crate::lifecycle::PostStartHook;
use crate::loopback::{LoopbackClient, PatchType, ResourceRef};
use crate::readings::Readings;
use kubelith_codec::json;
use kubelith_fairness::spec::Condition;
use kubelith_fairness::{FlowSchema, PriorityLevel};
use kubelith_meta::text::Quoted;
use kubelith_meta::time::{Clock, Time};
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_observe::metrics::requests::RequestMetrics;
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The field manager of the condition.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// How often seats are lent anew.
const ADJUST: Duration = Duration::from_secs(10);
/// How often the peaks of running and waiting requests are shown.
const SHOW: Duration = Duration::from_secs(1);
/// Two servers that disagree would write for ever: no more than this per schema and minute.
const MAX_WRITES: usize = 6;
const WRITES_WITHIN: Duration = Duration::from_secs(60);
/// Everything is configured as one.
const KEY: &str = "configuration";

/// Where the objects are, and what counts requests.
pub struct Sources {
    pub levels: Arc<ResourceCache>,
    pub schemas: Arc<ResourceCache>,
    pub metrics: Arc<RequestMetrics>,
    /// Of the times in conditions.
    pub clock: Arc<dyn Clock>,
    pub readings: Arc<FlowReadings>,
}

/// What the objects say, read once however often they are looked at.
#[derive(Default)]
pub struct FlowReadings {
    levels: Readings<PriorityLevel>,
    schemas: Readings<FlowSchema>,
}

/// Revisions of the stored levels and schemas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Followed {
    pub levels: i64,
    pub schemas: i64,
}

impl Followed {
    /// What the caches hold now.
    pub fn of(levels: &ResourceCache, schemas: &ResourceCache) -> Followed {
        Followed { levels: levels.snapshot().revision, schemas: schemas.snapshot().revision }
    }
}

impl Fairness {
    /// Waits until what is stored up to there counts, and flow schemas say what becomes of them.
    pub async fn caught_up(&self, with: Followed) {
        let mut followed = self.followed.subscribe();
        let is_there = |now: &Followed| now.levels >= with.levels && now.schemas >= with.schemas;
        // It lasts as long as `self`.
        let _ = followed.wait_for(is_there).await;
    }
}

/// Has what is stored read before the first request, and returns the hooks that follow it from the start of the server on, in the order in
/// which health shows them.
pub fn hooks(fairness: &Arc<Fairness>, sources: Sources) -> Vec<PostStartHook> {
    let Sources { levels, schemas, metrics, clock, readings } = sources;
    let (reader, stored) = (Arc::downgrade(fairness), (levels.clone(), schemas.clone(), readings.clone()));
    fairness.reading.put_off(move || {
        if let Some(fairness) = reader.upgrade() {
            fairness.configure(stored.2.read(&stored.0, &stored.1));
        }
    });
    let (consumer, shown, counted) = (fairness.clone(), fairness.clone(), fairness.clone());
    vec![
        PostStartHook::new("priority-and-fairness-config-consumer", move |context| async move {
            let follower = Arc::new(Follower {
                fairness: consumer.clone(),
                levels: levels.clone(),
                schemas: schemas.clone(),
                client: context.client,
                clock,
                readings,
                writes: Mutex::default(),
            });
            let reconcile = move |_| {
                let follower = follower.clone();
                async move { follower.reconcile().await }
            };
            let running = Controller::new("priority-and-fairness-config-consumer", reconcile)
                .watches(&levels, |_| vec![KEY.into()])
                .watches(&schemas, |_| vec![KEY.into()])
                .start(&context.tasks);
            let idle = consumer.idle.clone();
            context.tasks.spawn_until_stopped("priority-level-removal", async move {
                loop {
                    idle.notified().await;
                    running.add(KEY);
                }
            });
            context.tasks.spawn_until_stopped("priority-level-borrowing", async move {
                loop {
                    tokio::time::sleep(ADJUST).await;
                    consumer.adjust_limits();
                }
            });
            Ok(())
        }),
        PostStartHook::new("priority-and-fairness-filter", move |context| async move {
            context.tasks.spawn_until_stopped("priority-and-fairness-filter", async move {
                loop {
                    tokio::time::sleep(SHOW).await;
                    shown.in_flight.show(&metrics);
                }
            });
            Ok(())
        }),
        PostStartHook::new("storage-object-count-tracker-hook", move |context| async move {
            context.tasks.spawn_until_stopped("storage-object-count-tracker", async move {
                loop {
                    counted.counts.refresh();
                    tokio::time::sleep(REFRESH).await;
                }
            });
            Ok(())
        }),
    ]
}

struct Follower {
    fairness: Arc<Fairness>,
    levels: Arc<ResourceCache>,
    schemas: Arc<ResourceCache>,
    client: LoopbackClient,
    clock: Arc<dyn Clock>,
    readings: Arc<FlowReadings>,
    /// When the status of which schema was written lately.
    writes: Mutex<HashMap<Str, VecDeque<Instant>>>,
}

impl Follower {
    async fn reconcile(&self) -> Result<Next, String> {
        let seen = Followed::of(&self.levels, &self.schemas);
        let objects = self.readings.read(&self.levels, &self.schemas);
        let due: Vec<(Str, Condition)> = objects
            .schemas
            .iter()
            .filter_map(|schema| {
                let condition = dangling(schema, &objects.levels);
                (schema.dangling.as_ref() != Some(&condition)).then(|| (schema.name.clone(), condition))
            })
            .collect();
        self.fairness.configure(objects);
        let mut errors = Vec::new();
        let mut next = Next::Done;
        for (name, condition) in due {
            if !self.may_write(&name) {
                let seconds = 30.0 + 45.0 * kubelith_meta::random::unit();
                next = Next::After(Duration::from_secs_f64(seconds));
            } else if let Err(why) = self.write(&name, &condition).await {
                errors.push(format!("failed to set a status.condition for FlowSchema {name}: {why}"));
            }
        }
        self.fairness.followed.send_replace(seen);
        if errors.is_empty() { Ok(next) } else { Err(errors.join(", ")) }
    }

    fn may_write(&self, name: &Str) -> bool {
        let mut writes = self.writes.lock().unwrap_or_else(|e| e.into_inner());
        let now = Instant::now();
        writes.retain(|_, times| {
            while times.front().is_some_and(|time| now.duration_since(*time) > WRITES_WITHIN) {
                times.pop_front();
            }
            !times.is_empty()
        });
        let times = writes.entry(name.clone()).or_default();
        let may = times.len() < MAX_WRITES;
        if may {
            times.push_back(now);
        }
        may
    }

    async fn write(&self, name: &str, condition: &Condition) -> Result<(), String> {
        let resource = GroupVersionResource::new("flowcontrol.apiserver.k8s.io", "v1", "flowschemas");
        let target = ResourceRef::new(&resource).name(name).subresource("status");
        let target = target.with("fieldManager", MANAGER).with("force", "true");
        let object = status(name, condition, self.clock.now());
        match self.client.patch(&target, PatchType::Apply, &object).await {
            Err(status) if status.code != 404 => Err(status.message.to_string()),
            // Who is gone needs no status.
            _ => Ok(()),
        }
    }
}

/// What is applied to a schema, to say so.
fn status(name: &str, condition: &Condition, now: Time) -> Value {
    let conditions = vec![Value::from([
        ("type", Value::from("Dangling")),
        ("status", Value::String(condition.status.clone())),
        ("lastTransitionTime", Value::from(now.rfc3339())),
        ("reason", Value::String(condition.reason.clone())),
        ("message", Value::String(condition.message.clone())),
    ])];
    Value::from([
        ("apiVersion", Value::from("flowcontrol.apiserver.k8s.io/v1")),
        ("kind", Value::from("FlowSchema")),
        ("metadata", Value::from([("name", Value::from(name))])),
        ("status", Value::from([("conditions", Value::from(conditions))])),
    ])
}

/// What is applied to a new schema whose level is there, and by which field manager.
pub fn first_status(schema: &Value, now: Time) -> (&'static str, Value) {
    let condition = judged(schema.str_at(&["spec", "priorityLevelConfiguration", "name"]), true);
    (MANAGER, status(schema.meta().name(), &condition, now))
}

/// The condition that a schema should have.
fn dangling(schema: &FlowSchema, levels: &[PriorityLevel]) -> Condition {
    judged(&schema.level, levels.iter().any(|level| level.name == schema.level))
}

/// The condition of a schema that names a level, if that is `found`.
fn judged(level: &str, found: bool) -> Condition {
    let references = "This FlowSchema references the PriorityLevelConfiguration object named";
    let (status, reason, end) =
        if found { ("False", "Found", "and it exists") } else { ("True", "NotFound", "but there is no such object") };
    Condition {
        status: status.into(),
        reason: reason.into(),
        message: format!("{references} {} {end}", Quoted(level)).into(),
    }
}

impl FlowReadings {
    /// All objects there are; broken levels are left out, as if they did not exist.
    fn read(&self, levels: &ResourceCache, schemas: &ResourceCache) -> Objects {
        let value = |object: &CachedObject| json::parse_stored(&object.json()).ok();
        let level = |object: &CachedObject| {
            let value = value(object)?;
            let broken = |why| {
                let name = value.str_at(&["metadata", "name"]);
                tracing::warn!("Ignoring PriorityLevelConfiguration object {name} because its spec is broken: {why}");
            };
            PriorityLevel::parse(&value).map_err(broken).ok()
        };
        let schema = |object: &CachedObject| Some(FlowSchema::parse(&value(object)?));
        self.levels.retain(levels);
        self.schemas.retain(schemas);
        let (levels, schemas) = (levels.snapshot(), schemas.snapshot());
        let levels = levels.objects.values().filter_map(|object| self.levels.of(object, level));
        let schemas = schemas.objects.values().filter_map(|object| self.schemas.of(object, schema));
        Objects {
            levels: levels.map(|level| PriorityLevel::clone(&level)).collect(),
            schemas: schemas.map(|schema| FlowSchema::clone(&schema)).collect(),
        }
    }
}
