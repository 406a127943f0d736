//! Leases for keys with a TTL, shared between keys: a lease costs etcd far more than a key does.
//!
//! A key that should live for T seconds is attached to a lease with a little more than T left, so events of
//! one minute share one lease. How much more and how many keys are kube-apiserver's figures.

use super::calls::Method;
use super::client::{CallError, Client, Kind};
use super::proto::{LeaseGrantRequest, LeaseGrantResponse};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A lease is given this part of the TTL in addition, but no more than the duration; for that long it is reused.
const REUSE_PERCENT: u64 = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseLimits {
    pub reuse: Duration,
    pub max_keys: u64,
}

pub(super) struct Leases {
    limits: LeaseLimits,
    /// Held over the grant on purpose: whoever needs a lease meanwhile should get that one.
    last: Mutex<Option<Lease>>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    id: i64,
    expires: Instant,
    keys: u64,
}

impl Leases {
    pub fn new(limits: LeaseLimits) -> Leases {
        Leases { limits, last: Mutex::new(None) }
    }

    /// A lease that ends no sooner than `ttl` from now, and little later.
    pub async fn get(&self, client: &Client, ttl: Duration) -> Result<i64, CallError> {
        let ttl = ttl.as_secs().max(1);
        let extra = (ttl * REUSE_PERCENT / 100).min(self.limits.reuse.as_secs());
        let now = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(lease) = &mut *last {
            lease.keys += 1;
            let long_enough = now + Duration::from_secs(ttl) < lease.expires;
            let not_too_long = now + Duration::from_secs(ttl + extra) > lease.expires;
            if long_enough && not_too_long && lease.keys <= self.limits.max_keys {
                return Ok(lease.id);
            }
        }
        let request = LeaseGrantRequest { ttl: (ttl + extra) as i64, id: 0 };
        // A lease that nobody uses costs little: a grant whose answer got lost may be made again.
        let granted: LeaseGrantResponse = client.call(Kind::Read, Method::LeaseGrant, request).await?;
        client.counts.leases.observe(last.map_or(1, |lease| lease.keys));
        *last = Some(Lease { id: granted.id, expires: now + Duration::from_secs(ttl + extra), keys: 1 });
        Ok(granted.id)
    }

    /// Forgets a lease that etcd does not know any more.
    pub async fn forget(&self, id: i64) {
        let mut last = self.last.lock().await;
        if last.is_some_and(|lease| lease.id == id) {
            *last = None;
        }
    }
}
