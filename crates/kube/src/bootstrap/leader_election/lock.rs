//! Which of the servers elects leaders: the one that holds a Lease of its own and renews it in time.

use crate::bootstrap::{Bootstrap, KUBE_SYSTEM, ensure_namespace, find};
use kubelith_meta::time::{Duration as Span, Time};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::Pauses;
use kubelith_server::loopback::ResourceRef;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const NAME: &str = "leader-election-controller";

/// `--coordinated-leadership-*`.
#[derive(Debug, Clone, Copy)]
pub struct LeadershipTimes {
    pub lease: Duration,
    pub renew_deadline: Duration,
    pub retry: Duration,
}

pub struct Lock {
    config: Arc<Bootstrap>,
    times: LeadershipTimes,
    identity: String,
}

impl Lock {
    pub fn new(config: &Arc<Bootstrap>, times: LeadershipTimes) -> Lock {
        let made_up = config.resources.get(&("coordination.k8s.io".into(), "leases".into())).map(|r| r.made_up.clone());
        let bits = made_up.unwrap_or_default().bits(&["elections", &config.identity.id]);
        let identity = format!("{}_{bits:016x}", config.identity.hostname);
        Lock { config: config.clone(), times, identity }
    }

    /// Tries to be the one, for ever. `led` is told when we become it and when we are it no more.
    pub async fn contend(&self, led: impl Fn(bool)) {
        let mut pauses = Pauses::by(&self.config.clock);
        loop {
            while !self.hold().await.unwrap_or(false) {
                pauses.pause(self.times.retry).await;
            }
            led(true);
            let mut renewed = Instant::now();
            while renewed.elapsed() < self.times.renew_deadline {
                pauses.pause(self.times.retry).await;
                match self.hold().await {
                    Ok(true) => renewed = Instant::now(),
                    Ok(false) => break,
                    Err(why) => tracing::warn!(err = %why, "leadership of elections not renewed"),
                }
            }
            led(false);
        }
    }

    /// Gives it up, so that another server need not wait.
    pub async fn release(&self) {
        let resource = leases();
        let target = ResourceRef::new(&resource).namespace(KUBE_SYSTEM).name(NAME);
        if let Ok(Some(mut lease)) = find(&self.config.client, &target).await
            && lease.str_at(&["spec", "holderIdentity"]) == self.identity
        {
            lease.set_at(&["spec", "holderIdentity"], "".into());
            lease.set_at(&["spec", "leaseDurationSeconds"], 1.into());
            let _ = self.config.client.update(&target, &lease).await;
        }
    }

    /// Takes or renews the lease; `false` if it is another's.
    async fn hold(&self) -> Result<bool, Status> {
        let (client, resource, now) = (&self.config.client, leases(), self.config.clock.now());
        let collection = ResourceRef::new(&resource).namespace(KUBE_SYSTEM);
        let target = collection.clone().name(NAME);
        let Some(mut lease) = find(client, &target).await? else {
            ensure_namespace(client, KUBE_SYSTEM).await?;
            let mut lease = Value::object();
            lease.meta_mut().set_name(NAME).set_namespace(KUBE_SYSTEM);
            take(&mut lease, &self.identity, self.times.lease, now);
            return client.create(&collection, &lease).await.map(|_| true);
        };
        if !may_take(&lease, &self.identity, now) {
            return Ok(false);
        }
        take(&mut lease, &self.identity, self.times.lease, now);
        match client.update(&target, &lease).await {
            Err(why) if why.is_conflict() => Ok(false),
            updated => updated.map(|_| true),
        }
    }
}

pub fn leases() -> GroupVersionResource {
    GroupVersionResource::new("coordination.k8s.io", "v1", "leases")
}

fn may_take(lease: &Value, identity: &str, now: Time) -> bool {
    let holder = lease.str_at(&["spec", "holderIdentity"]);
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    let renewed = Time::parse_micro(lease.str_at(&["spec", "renewTime"])).ok();
    holder.is_empty() || holder == identity || renewed.is_none_or(|r| r + Span::from_secs(seconds) < now)
}

fn take(lease: &mut Value, identity: &str, life: Duration, now: Time) {
    let now = now.rfc3339_micro();
    if lease.str_at(&["spec", "holderIdentity"]) != identity {
        let changes = lease.at(&["spec", "leaseTransitions"]).and_then(Value::as_i64);
        let changes = if lease.get("spec").is_some() { changes.unwrap_or(0) + 1 } else { 0 };
        lease.set_at(&["spec", "holderIdentity"], identity.into());
        lease.set_at(&["spec", "acquireTime"], now.as_str().into());
        lease.set_at(&["spec", "leaseTransitions"], changes.into());
    }
    lease.set_at(&["spec", "leaseDurationSeconds"], i64::try_from(life.as_secs()).unwrap_or(i64::MAX).into());
    lease.set_at(&["spec", "renewTime"], now.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_changes_hands_when_it_has_expired() {
        let (mut lease, life) = (Value::object(), Duration::from_secs(15));
        let at = |seconds: i64| Time::from_unix(1000 + seconds);
        assert!(may_take(&lease, "a", at(0)));
        take(&mut lease, "a", life, at(0));
        assert!(may_take(&lease, "a", at(1)) && !may_take(&lease, "b", at(15)) && may_take(&lease, "b", at(16)));
        take(&mut lease, "a", life, at(10));
        assert_eq!(lease.at(&["spec", "leaseTransitions"]), Some(&Value::Int(0)));
        take(&mut lease, "b", life, at(30));
        assert_eq!(lease.at(&["spec", "leaseTransitions"]), Some(&Value::Int(1)));
        assert_eq!(lease.str_at(&["spec", "acquireTime"]), at(30).rfc3339_micro());
    }
}
