//! The namespace controller: a namespace that is being deleted is emptied, and goes when nothing is left in it.

mod conditions;
mod content;

use crate::world::{Known, World};
use crate::{Context, caches};
use conditions::Findings;
use content::Remaining;
use futures::StreamExt;
use kubelith_meta::text::aggregate;
use kubelith_meta::time::{Clock, Duration as Span};
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Backoff, Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Namespaces that are emptied at a time.
const WORKERS: usize = 10;
/// Resources of one namespace that are emptied at a time: what is deleted together is written to the disk together.
const RESOURCES: usize = 16;
/// A failed attempt is made again after this time at the latest.
const RETRY: Backoff = Backoff { first: Duration::from_millis(5), most: Duration::from_secs(60) };
/// The first look at what somebody else still has to finish; the pauses grow from there.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const FINALIZER: &str = "kubernetes";

struct Emptier {
    client: LoopbackClient,
    namespaces: Arc<ResourceCache>,
    world: Arc<dyn World>,
    clock: Arc<dyn Clock>,
    grace: Duration,
    pause: Duration,
    waiting: Mutex<HashMap<Str, Waiting>>,
}

/// A namespace that is not empty yet.
struct Waiting {
    /// Another one of the same name waits anew.
    uid: Str,
    /// When it was first looked at.
    since: Instant,
    /// The last pause while others had to do something.
    pause: Option<Duration>,
}

pub fn start(context: &Context) {
    let Some(namespaces) = context.world.cache("", "namespaces") else { return };
    let emptier = Arc::new(Emptier {
        client: context.client("namespace-controller"),
        namespaces: namespaces.clone(),
        world: context.world.clone(),
        clock: context.clock.clone(),
        grace: context.settings.namespace_grace,
        pause: context.settings.namespace_pause,
        waiting: Mutex::default(),
    });
    Controller::new("namespace", move |name: Str| {
        let emptier = emptier.clone();
        async move { emptier.reconcile(&name).await }
    })
    .watches(&namespaces, |change| {
        let deleting = change.new.as_ref().is_some_and(|new| caches::BEING_DELETED.is_in(new));
        deleting.then(|| change.key()).into_iter().collect()
    })
    .workers(WORKERS)
    .backoff(RETRY)
    .metrics(&context.metrics)
    .start(&context.tasks);
}

/// What is left of a namespace's content.
enum Outcome {
    Empty,
    /// Others have to do something; they may take so many seconds.
    Wait(i64),
}

impl Waiting {
    fn new(uid: &str) -> Waiting {
        Waiting { uid: uid.into(), since: Instant::now(), pause: None }
    }
}

impl Emptier {
    async fn reconcile(&self, name: &Str) -> Result<Next, String> {
        let Some(namespace) = self.namespaces.get(name).and_then(|n| caches::value(&n)) else {
            return Ok(self.finished(name));
        };
        let Some(since) = namespace.meta().deletion_timestamp() else { return Ok(self.finished(name)) };
        let seen = self.seen(name, namespace.meta().uid());
        if let Some(left) = self.too_early(since, seen) {
            return Ok(Next::After(left));
        }
        match self.empty(name).await {
            Ok(Some(Outcome::Wait(estimate))) => Ok(Next::After(self.pause(name, estimate))),
            Ok(_) => Ok(self.finished(name)),
            Err(why) => Err(format!("Deletion of namespace failed: {why}")),
        }
    }

    fn finished(&self, name: &Str) -> Next {
        self.waiting.lock().expect("no panic under this lock").remove(name);
        Next::Done
    }

    /// Other servers may not have seen yet that nothing may come into the namespace any more; whoever deleted it may want to
    /// end it without us. The time of the deletion is told in seconds, which is too coarse for a pause of less.
    fn too_early(&self, since: kubelith_meta::time::Time, seen: Instant) -> Option<Duration> {
        let grace = match self.grace.is_zero() {
            true => None,
            false => self.grace.checked_sub(self.clock.now().since(since).into()),
        };
        let pause = self.pause.checked_sub(seen.elapsed());
        grace.max(pause).filter(|left| !left.is_zero())
    }

    /// When the namespace was first looked at.
    fn seen(&self, name: &Str, uid: &str) -> Instant {
        let mut waiting = self.waiting.lock().expect("no panic under this lock");
        let entry = waiting.entry(name.clone()).or_insert_with(|| Waiting::new(uid));
        if entry.uid != uid {
            *entry = Waiting::new(uid);
        }
        entry.since
    }

    /// Grows until it is what kube-controller-manager waits.
    fn pause(&self, name: &Str, estimate: i64) -> Duration {
        let most = Duration::from_secs(estimate as u64 / 2 + 1);
        let mut waiting = self.waiting.lock().expect("no panic under this lock");
        let last = waiting.get(name).and_then(|waiting| waiting.pause);
        let pause = last.map_or(FIRST_LOOK, |last| last.saturating_mul(2)).min(most);
        if let Some(waiting) = waiting.get_mut(name) {
            waiting.pause = Some(pause);
        }
        pause
    }

    /// `None`: there is nothing to do.
    async fn empty(&self, name: &str) -> Result<Option<Outcome>, String> {
        let Some(namespace) = self.get(name).await? else { return Ok(None) };
        if !namespace.meta().is_being_deleted() {
            return Ok(None);
        }
        let Some(namespace) = self.terminating(namespace).await? else { return Ok(None) };
        if !namespace.meta().is_being_deleted() || spec_finalizers(&namespace).is_empty() {
            return Ok(None);
        }
        let estimate = self.delete_content(&namespace).await?;
        if estimate > 0 {
            return Ok(Some(Outcome::Wait(estimate)));
        }
        self.finalize(namespace).await?;
        Ok(Some(Outcome::Empty))
    }

    async fn get(&self, name: &str) -> Result<Option<Value>, String> {
        found(self.client.get(&ResourceRef::new(&namespaces()).name(name)).await)
    }

    /// Makes a change until nobody comes between.
    async fn write(
        &self,
        mut namespace: Value,
        subresource: &str,
        change: impl Fn(&mut Value) -> bool,
    ) -> Result<Option<Value>, String> {
        let (name, uid) = (namespace.meta().name().to_owned(), namespace.meta().uid().to_owned());
        loop {
            if !change(&mut namespace) {
                return Ok(Some(namespace));
            }
            let target = (namespaces(), name.as_str());
            let target = ResourceRef::new(&target.0).name(target.1).subresource(subresource);
            match self.client.update(&target, &namespace).await {
                Err(status) if status.is_conflict() => {}
                written => return found(written),
            }
            let Some(latest) = self.get(&name).await? else { return Ok(None) };
            if latest.meta().uid() != uid {
                return Err("namespace uid has changed across retries".to_owned());
            }
            namespace = latest;
        }
    }

    async fn terminating(&self, namespace: Value) -> Result<Option<Value>, String> {
        self.write(namespace, "status", |namespace| {
            let wrong = namespace.meta().is_being_deleted() && namespace.str_at(&["status", "phase"]) != "Terminating";
            if wrong {
                namespace.set_at(&["status", "phase"], "Terminating".into());
            }
            wrong
        })
        .await
    }

    async fn finalize(&self, namespace: Value) -> Result<(), String> {
        let finalize = |namespace: &mut Value| {
            let left: std::collections::BTreeSet<String> =
                spec_finalizers(namespace).into_iter().filter(|f| f != FINALIZER).collect();
            let left: Vec<Value> = left.into_iter().map(Value::from).collect();
            namespace.set_at(&["spec", "finalizers"], left.into());
            true
        };
        self.write(namespace, "finalize", finalize).await.map(drop)
    }

    /// Deletes what is in the namespace, pods before everything else; answers how many seconds others may need.
    async fn delete_content(&self, namespace: &Value) -> Result<i64, String> {
        let name = namespace.meta().name();
        let deleted_at = namespace.meta().deletion_timestamp().unwrap_or_else(|| self.clock.now());
        let age = self.clock.now().since(deleted_at);
        let discovered = self.world.discover();
        let mut findings = Findings::default();
        let mut errors = Vec::new();
        if let Some(why) = discovered.failure() {
            findings.discovery =
                Some(format!("Discovery failed for some groups, {} failing: {why}", discovered.stale.len()));
            errors.push(why);
        }
        let preferred = discovered.preferred();
        let deletable = || preferred.iter().filter(|r| r.namespaced && r.can("delete"));
        let mut estimate = 0;
        let is_pods = |r: &Known| r.resource.group.is_empty() && r.resource.resource == "pods";
        if let Some(pods) = deletable().find(|r| is_pods(r)) {
            let (remaining, why) = self.delete_all(pods, name, age).await;
            if let Some(why) = why {
                errors.push(format!("failed to delete pods for namespace: {name}, err: {why}"));
                findings.content.push(why);
            }
            estimate = remaining.estimate;
            if remaining.count > 0 {
                // What pods need stays until they are gone. What remains is told when everything was tried.
                self.tell(namespace, &mut findings).await;
                return failed(errors).map_or(Ok(estimate), Err);
            }
        }
        let rest: Vec<Known> = deletable().filter(|r| !is_pods(r)).map(|r| (*r).clone()).collect();
        let each = |r: Known| async move {
            let outcome = self.delete_all(&r, name, age).await;
            (r, outcome)
        };
        let mut outcomes = futures::stream::iter(rest.into_iter().map(each)).buffer_unordered(RESOURCES);
        while let Some((resource, (remaining, why))) = outcomes.next().await {
            if let Some(why) = why {
                errors.push(why.clone());
                findings.content.push(why);
            }
            estimate = estimate.max(remaining.estimate);
            findings.remains(&resource.resource, &remaining);
        }
        drop(outcomes);
        self.tell(namespace, &mut findings).await;
        failed(errors).map_or(Ok(estimate), Err)
    }

    async fn delete_all(&self, resource: &Known, namespace: &str, age: Span) -> (Remaining, Option<String>) {
        match content::delete(&self.client, resource, namespace, age).await {
            Ok(remaining) => (remaining, None),
            Err((remaining, why)) => (remaining, Some(why)),
        }
    }

    /// Says in the conditions how it went.
    async fn tell(&self, namespace: &Value, findings: &mut Findings) {
        let mut namespace = namespace.clone();
        if !findings.write(&mut namespace, self.clock.now()) {
            return;
        }
        let name = namespace.meta().name().to_owned();
        let resource = namespaces();
        let target = ResourceRef::new(&resource).name(&name).subresource("status");
        if let Err(why) = self.client.update(&target, &namespace).await {
            tracing::warn!(namespace = name, err = why.message, "Couldn't update status condition for namespace");
        }
    }
}

fn failed(errors: Vec<String>) -> Option<String> {
    (!errors.is_empty()).then(|| aggregate(errors))
}

fn found(answer: Result<Value, Status>) -> Result<Option<Value>, String> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(status) if status.is_not_found() => Ok(None),
        Err(status) => Err(status.message),
    }
}

fn spec_finalizers(namespace: &Value) -> Vec<String> {
    let finalizers = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    finalizers.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn namespaces() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "namespaces")
}
