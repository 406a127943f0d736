//! Coordinated leader election: components say that they want a lease (LeaseCandidate), and the server gives it to the
//! one that fits best. Only with the feature gate CoordinatedLeaderElection, and on one server at a time.

mod election;
mod lock;

pub use lock::LeadershipTimes;

use super::{Bootstrap, find};
use election::{LEASE_SECONDS, LOOK_AGAIN, Step};
use kubelith_codec::json;
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Controller, Next, Running};
use kubelith_server::lifecycle::{HookContext, PostStartHook, PreShutdownHook};
use kubelith_server::loopback::ResourceRef;
use kubelith_server::{Delegate, Pauses};
use kubelith_store::cache::{CachedObject, ResourceCache};
use lock::{Lock, leases};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

const GROUP: &str = "coordination.k8s.io";
/// Between looks for candidates that are gone; the first is a moment (`--coordinated-leadership-retry-period`) after this server begins to
/// elect, as in the reference, whose first try to lead comes before there is a namespace for the lease.
const COLLECT: Duration = Duration::from_secs(30 * 60);
/// To give the leadership back when the server stops.
const STOP_LIMIT: Duration = Duration::from_secs(5);

pub fn install(config: &Arc<Bootstrap>, times: LeadershipTimes, kube: Delegate) -> Delegate {
    let (Some(leases), Some(candidates)) = (config.cache(GROUP, "leases"), config.cache(GROUP, "leasecandidates"))
    else {
        tracing::warn!("nobody is elected: LeaseCandidates are not served");
        return kube;
    };
    let lock = Arc::new(Lock::new(config, times));
    let elections =
        Arc::new(Elections { config: config.clone(), leases, candidates, leads: Arc::new(AtomicBool::new(false)) });
    let released = lock.clone();
    kube.post_start_hook(PostStartHook::new(
        "start-kube-apiserver-coordinated-leader-election-controller",
        move |context| async move {
            let running = elections.clone().start(&context);
            let (collecting, leads) = (elections.clone(), elections.leads.clone());
            let begun = Arc::new(Notify::new());
            let leading = begun.clone();
            context.tasks.spawn_until_stopped("leader-election-lock", async move {
                let led = |now_leads: bool| {
                    leads.store(now_leads, Ordering::Release);
                    if now_leads {
                        elections.all_leases().into_iter().for_each(|key| running.add(key));
                        begun.notify_one();
                    }
                };
                lock.contend(led).await;
            });
            context.tasks.spawn_until_stopped("lease-candidate-gc", async move {
                let mut pauses = Pauses::by(&collecting.config.clock);
                loop {
                    tokio::select! {
                        () = leading.notified() => pauses.pause(times.retry).await,
                        () = pauses.pause(COLLECT) => {}
                    }
                    collecting.collect().await;
                }
            });
            Ok(())
        },
    ))
    .pre_shutdown_hook(PreShutdownHook::new(
        "stop-kube-apiserver-coordinated-leader-election",
        move || async move {
            let _ = tokio::time::timeout(STOP_LIMIT, released.release()).await;
            Ok(())
        },
    ))
}

struct Elections {
    config: Arc<Bootstrap>,
    leases: Arc<ResourceCache>,
    candidates: Arc<ResourceCache>,
    /// This server elects.
    leads: Arc<AtomicBool>,
}

fn candidates() -> GroupVersionResource {
    GroupVersionResource::new(GROUP, "v1beta1", "leasecandidates")
}

fn read(object: &CachedObject) -> Option<Value> {
    json::parse(&object.json()).ok()
}

/// `namespace/name` of the lease that a candidate wants.
fn wanted(candidate: &Value) -> Str {
    format!("{}/{}", candidate.meta().namespace(), candidate.str_at(&["spec", "leaseName"])).into()
}

impl Elections {
    fn start(self: Arc<Self>, context: &HookContext) -> Running {
        let (leases, candidates, clock) = (self.leases.clone(), self.candidates.clone(), self.config.clock.clone());
        Controller::new("leader-election-controller", move |key: Str| {
            let this = self.clone();
            async move { this.reconcile(&key).await }
        })
        .watches(&leases, |change| vec![change.key()])
        .watches(&candidates, |change| {
            let candidate = read(change.object()).filter(|candidate| !election::is_asked(candidate));
            candidate.iter().map(wanted).collect()
        })
        .metrics(&context.metrics)
        .by(&clock)
        .start(&context.tasks)
    }

    fn all(&self) -> Vec<Value> {
        self.candidates.snapshot().range("", None).filter_map(|object| read(object)).collect()
    }

    fn all_leases(&self) -> Vec<Str> {
        self.all().iter().map(wanted).collect()
    }

    async fn reconcile(&self, key: &Str) -> Result<Next, Status> {
        if !self.leads.load(Ordering::Acquire) {
            return Ok(Next::Done);
        }
        let now = self.config.clock.now();
        let mut candidates = self.all();
        candidates.retain(|candidate| wanted(candidate) == *key && election::is_alive(candidate, now));
        let lease = self.leases.get(key).as_deref().and_then(read);
        match election::step(now, lease.as_ref(), &candidates) {
            Step::Nothing => Ok(Next::Done),
            Step::Wait => Ok(Next::After(LOOK_AGAIN)),
            Step::Failed(why) => {
                tracing::warn!(lease = %key, why, "no leader is elected");
                Ok(Next::After(LOOK_AGAIN))
            }
            Step::Ask(asked) => {
                for i in asked {
                    self.ask(candidates[i].clone()).await?;
                }
                Ok(Next::After(LOOK_AGAIN))
            }
            Step::Elect { strategy, holder } => {
                self.elect(key, &strategy, holder.as_deref()).await?;
                Ok(Next::After(LOOK_AGAIN))
            }
        }
    }

    async fn ask(&self, mut candidate: Value) -> Result<(), Status> {
        candidate.set_at(&["apiVersion"], format!("{GROUP}/v1beta1").into());
        candidate.set_at(&["spec", "pingTime"], self.config.clock.now().rfc3339_micro().into());
        let (resource, meta) = (candidates(), candidate.meta());
        let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
        self.config.client.update(&target, &candidate).await.map(drop)
    }

    async fn elect(&self, key: &str, strategy: &str, holder: Option<&str>) -> Result<(), Status> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let (client, resource, now) = (&self.config.client, leases(), self.config.clock.now());
        let collection = ResourceRef::new(&resource).namespace(namespace);
        let target = collection.clone().name(name);
        let Some(existing) = find(client, &target).await? else {
            let mut lease = Value::object();
            lease.meta_mut().set_name(name).set_namespace(namespace);
            lease.set_at(&["spec", "strategy"], strategy.into());
            lease.set_at(&["spec", "leaseDurationSeconds"], LEASE_SECONDS.into());
            lease.set_at(&["spec", "renewTime"], now.rfc3339_micro().into());
            if let Some(holder) = holder {
                lease.set_at(&["spec", "holderIdentity"], holder.into());
            }
            return client.create(&collection, &lease).await.map(drop);
        };
        let mut lease = existing.clone();
        let held_by = existing.str_at(&["spec", "holderIdentity"]);
        lease.set_at(&["spec", "strategy"], strategy.into());
        match holder {
            Some(holder) if held_by.is_empty() || (election::is_expired(&existing, now) && held_by != holder) => {
                lease.remove_at(&["spec", "preferredHolder"]);
                lease.remove_at(&["spec", "acquireTime"]);
                lease.set_at(&["spec", "holderIdentity"], holder.into());
                lease.set_at(&["spec", "renewTime"], now.rfc3339_micro().into());
                lease.set_at(&["spec", "leaseDurationSeconds"], LEASE_SECONDS.into());
            }
            // The holder is to step back for that one.
            Some(holder) if held_by != holder => lease.set_at(&["spec", "preferredHolder"], holder.into()),
            _ => {}
        }
        if lease == existing {
            return Ok(());
        }
        client.update(&target, &lease).await.map(drop)
    }

    /// Removes candidates that are gone.
    async fn collect(&self) {
        if !self.leads.load(Ordering::Acquire) {
            return;
        }
        let (now, resource) = (self.config.clock.now(), candidates());
        for candidate in self.all().iter().filter(|candidate| !election::is_alive(candidate, now)) {
            let meta = candidate.meta();
            let precondition = Value::from([("resourceVersion", meta.resource_version())]);
            let options = Value::from([("preconditions", precondition)]);
            let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
            match self.config.client.delete(&target, Some(&options)).await {
                Err(why) if !(why.is_not_found() || why.is_conflict()) => {
                    tracing::error!(err = %why, "error deleting a lease candidate");
                }
                _ => {}
            }
        }
    }
}
