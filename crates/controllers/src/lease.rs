//! Who acts: the holder of the lease that kube-controller-manager uses, taken, kept and given back as it does.

use crate::caches;
use crate::events::{Recorder, Subject};
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::{Clock, Duration as Span, Time};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::Pauses;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::{ResourceCache, Scope};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-controller-manager";
const KEY: &str = "kube-system/kube-controller-manager";
/// How long others leave a lease alone that nobody renews.
const DURATION: Duration = Duration::from_secs(15);
/// Who could not renew for this long has lost it.
const DEADLINE: Duration = Duration::from_secs(10);
/// Between two attempts.
const RETRY: Duration = Duration::from_secs(2);

pub struct Lease {
    pub client: LoopbackClient,
    pub leases: Arc<ResourceCache>,
    pub clock: Arc<dyn Clock>,
    /// Who we are among those who want it.
    pub identity: String,
    pub made_up: MadeUp,
}

/// The lease is ours.
pub struct Leadership {
    lease: Arc<Lease>,
    /// As we wrote it last.
    held: Value,
}

/// Somebody else's lease as it was when we saw it change last. Clocks of other machines are not trusted.
struct Observed {
    holder: String,
    renewed: String,
    since: Instant,
    /// By a clock that is turned by hand, which decides where there is one.
    at: Time,
}

impl Observed {
    /// How long the lease has not changed.
    fn age(&self, clock: &dyn Clock) -> Duration {
        match clock.turns() {
            Some(_) => clock.now().since(self.at).max(Span::ZERO).into(),
            None => self.since.elapsed(),
        }
    }
}

impl Lease {
    /// Waits until the lease is ours. Dropping the future gives nothing up.
    pub async fn acquire(self: &Arc<Self>) -> Leadership {
        let mut observed: Option<Observed> = None;
        let mut pauses = Pauses::by(&self.clock);
        loop {
            let (snapshot, mut watcher) = self.leases.list_and_watch(Scope::Key(KEY.into()));
            let found = snapshot.get(KEY).and_then(|lease| caches::value(lease));
            let wait = match found {
                None => match self.create().await {
                    Ok(held) => return self.lead(held).await,
                    Err(why) => self.failed(&why),
                },
                Some(lease) => match observe(&mut observed, &lease, &self.identity, &*self.clock) {
                    Some(left) => left,
                    None => match self.take(lease).await {
                        Ok(held) => return self.lead(held).await,
                        Err(why) => self.failed(&why),
                    },
                },
            };
            let mut events = Vec::new();
            // Whoever gives it back is seen at once.
            tokio::select! {
                _ = watcher.next(&mut events) => {}
                () = pauses.pause(wait) => {}
            }
        }
    }

    fn failed(&self, why: &Status) -> Duration {
        if !why.is_conflict() && !why.is_already_exists() {
            tracing::warn!(err = why.message, "the lease of the controllers was not taken");
        }
        RETRY
    }

    async fn lead(self: &Arc<Self>, held: Value) -> Leadership {
        tracing::info!(lock = KEY, identity = self.identity, "Successfully acquired lease");
        let leadership = Leadership { lease: self.clone(), held };
        leadership.tell("became leader").await;
        leadership
    }

    async fn create(&self) -> Result<Value, Status> {
        let now = self.clock.now().rfc3339_micro();
        let mut lease = Value::object();
        lease.meta_mut().set_name(NAME).set_namespace(NAMESPACE);
        lease.set_at(&["spec"], self.spec(&now, &now, 0));
        self.client.create(&ResourceRef::new(&leases()).namespace(NAMESPACE), &lease).await
    }

    async fn take(&self, mut lease: Value) -> Result<Value, Status> {
        let now = self.clock.now().rfc3339_micro();
        let transitions = lease.at(&["spec", "leaseTransitions"]).and_then(Value::as_i64).unwrap_or(0);
        let ours = lease.str_at(&["spec", "holderIdentity"]) == self.identity;
        let acquired = if ours { lease.str_at(&["spec", "acquireTime"]).to_owned() } else { now.clone() };
        lease.set_at(&["spec"], self.spec(&acquired, &now, transitions + i64::from(!ours)));
        self.update(&lease).await
    }

    async fn update(&self, lease: &Value) -> Result<Value, Status> {
        self.client.update(&ResourceRef::new(&leases()).namespace(NAMESPACE).name(NAME), lease).await
    }

    fn spec(&self, acquired: &str, renewed: &str, transitions: i64) -> Value {
        Value::from([
            ("holderIdentity", Value::from(self.identity.as_str())),
            ("leaseDurationSeconds", Value::from(DURATION.as_secs() as i64)),
            ("acquireTime", acquired.into()),
            ("renewTime", renewed.into()),
            ("leaseTransitions", transitions.into()),
        ])
    }
}

/// Notes what a lease says; answers how long it must be left alone, `None` if it may be taken.
fn observe(observed: &mut Option<Observed>, lease: &Value, identity: &str, clock: &dyn Clock) -> Option<Duration> {
    let (holder, renewed) = (lease.str_at(&["spec", "holderIdentity"]), lease.str_at(&["spec", "renewTime"]));
    if holder.is_empty() || holder == identity {
        return None;
    }
    if observed.as_ref().is_none_or(|o| o.holder != holder || o.renewed != renewed) {
        let (holder, renewed) = (holder.to_owned(), renewed.to_owned());
        *observed = Some(Observed { holder, renewed, since: Instant::now(), at: clock.now() });
    }
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_i64).unwrap_or(0).max(0) as u64;
    let age = observed.as_ref().map_or(Duration::ZERO, |o| o.age(clock));
    let left = Duration::from_secs(seconds).saturating_sub(age);
    (!left.is_zero()).then_some(left)
}

impl Leadership {
    /// Keeps the lease; returns when it is lost. Dropping the future keeps the lease for as long as it lasts.
    pub async fn keep(&mut self) {
        let mut pauses = Pauses::by(&self.lease.clock);
        loop {
            pauses.pause(RETRY).await;
            if self.renew().await.is_err() {
                break;
            }
        }
        tracing::error!(lock = KEY, "leaderelection lost");
        self.tell("stopped leading").await;
    }

    async fn renew(&mut self) -> Result<(), Lost> {
        let now = self.lease.clock.now().rfc3339_micro();
        self.held.set_at(&["spec", "renewTime"], now.into());
        let end = Instant::now() + DEADLINE;
        loop {
            match tokio::time::timeout_at(end, self.lease.update(&self.held)).await {
                Ok(Ok(held)) => {
                    self.held = held;
                    return Ok(());
                }
                Ok(Err(why)) if why.is_conflict() || why.is_not_found() => self.look().await?,
                Ok(Err(why)) => tracing::warn!(err = why.message, "lease not renewed"),
                Err(_) => return Err(Lost),
            }
            if Instant::now() + RETRY >= end {
                return Err(Lost);
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Somebody wrote the lease: is it still ours?
    async fn look(&mut self) -> Result<(), Lost> {
        let target = (leases(), NAMESPACE, NAME);
        match self.lease.client.get(&ResourceRef::new(&target.0).namespace(target.1).name(target.2)).await {
            Ok(lease) if lease.str_at(&["spec", "holderIdentity"]) == self.lease.identity => {
                let spec = self.held.at(&["spec"]).cloned().unwrap_or_default();
                self.held = lease;
                self.held.set_at(&["spec"], spec);
                Ok(())
            }
            Ok(_) => Err(Lost),
            Err(why) if why.is_not_found() => {
                self.held = self.lease.create().await.map_err(|_| Lost)?;
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    /// Gives the lease back, so that another need not wait for its end.
    pub async fn release(mut self) {
        let now = self.lease.clock.now().rfc3339_micro();
        let transitions = self.held.at(&["spec", "leaseTransitions"]).cloned().unwrap_or(0.into());
        let spec = Value::from([
            ("holderIdentity", Value::from("")),
            ("leaseDurationSeconds", 1.into()),
            ("acquireTime", Value::from(now.as_str())),
            ("renewTime", Value::from(now.as_str())),
            ("leaseTransitions", transitions),
        ]);
        self.held.set_at(&["spec"], spec);
        match self.lease.update(&self.held).await {
            Ok(_) => {}
            Err(why) => tracing::warn!(err = why.message, "Failed to release lease"),
        }
    }

    async fn tell(&self, what: &str) {
        let recorder =
            Recorder::new(self.lease.client.clone(), self.lease.clock.clone(), self.lease.made_up.clone(), NAME);
        let subject = Subject::of("coordination.k8s.io/v1", "Lease", &self.held);
        recorder.normal(&subject, "LeaderElection", &format!("{} {what}", self.lease.identity)).await;
    }
}

/// The lease is not ours any more.
struct Lost;

fn leases() -> GroupVersionResource {
    GroupVersionResource::new("coordination.k8s.io", "v1", "leases")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_meta::time::{SystemClock, TestClock};

    fn lease(holder: &str, renewed: &str) -> Value {
        let mut lease = Value::object();
        lease.set_at(&["spec", "holderIdentity"], holder.into());
        lease.set_at(&["spec", "renewTime"], renewed.into());
        lease.set_at(&["spec", "leaseDurationSeconds"], 15.into());
        lease
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_left_alone_while_it_is_renewed() {
        let mut observed = None;
        assert_eq!(observe(&mut observed, &lease("", "1"), "me", &SystemClock), None);
        assert_eq!(observe(&mut observed, &lease("me", "1"), "me", &SystemClock), None);
        assert_eq!(observe(&mut observed, &lease("you", "1"), "me", &SystemClock), Some(DURATION));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(observe(&mut observed, &lease("you", "1"), "me", &SystemClock), Some(Duration::from_secs(5)));
        assert_eq!(observe(&mut observed, &lease("you", "2"), "me", &SystemClock), Some(DURATION));
        tokio::time::advance(DURATION).await;
        assert_eq!(observe(&mut observed, &lease("you", "2"), "me", &SystemClock), None);
    }

    #[test]
    fn a_clock_that_is_turned_decides() {
        let clock = TestClock::new(Time::from_unix(1000));
        let mut observed = None;
        assert_eq!(observe(&mut observed, &lease("you", "1"), "me", &clock), Some(DURATION));
        clock.advance(Span::from_secs(10));
        assert_eq!(observe(&mut observed, &lease("you", "1"), "me", &clock), Some(Duration::from_secs(5)));
        clock.advance(Span::from_secs(10));
        assert_eq!(observe(&mut observed, &lease("you", "1"), "me", &clock), None);
    }
}
