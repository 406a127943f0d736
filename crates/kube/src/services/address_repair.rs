//! Sets right which service has which address: each has an IPAddress that names the service, and none is held for nobody. A
//! service that was written by an older release, or into the store by hand, gets what it lacks as soon as it is seen.

use super::addresses::AddressError;
use super::{Services, view};
use kubelith_meta::time::Duration as Span;
use kubelith_meta::{Str, Time, Value};
use kubelith_registry::objects::parse;
use kubelith_server::controller::{Controller, Next};
use kubelith_server::lifecycle::HookContext;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// All of them are looked at again, against drift.
const INTERVAL: Duration = Duration::from_secs(3 * 60);
const WORKERS: usize = 5;
/// A request has ended by then: an address that was taken for a service that is still to be written is taken for nobody.
const REQUEST: Span = Span::from_secs(60);
/// An address that was taken for a service that exists, for which it turned out not to be meant, is given back by then.
const REVERSAL: Span = Span::from_secs(5);
const GROUP: &str = "networking.k8s.io";

/// Looks at all services and addresses, then follows them.
pub async fn start(services: &Arc<Services>, context: &HookContext) {
    let objects = &services.objects;
    let (Some(owners), Some(addresses)) = (objects.resource("", "services"), objects.resource(GROUP, "ipaddresses"))
    else {
        return;
    };
    let repair = Arc::new(AddressRepair { services: services.clone() });
    let by_service = repair.clone();
    let running = Controller::new("services", move |key: Str| {
        let repair = by_service.clone();
        async move { repair.look_at_service(&key).await }
    })
    .watches(&owners.cache, |change| vec![change.key()])
    .every(INTERVAL)
    .workers(WORKERS)
    .metrics(&context.metrics)
    .start(&context.tasks);
    running.settled().await;
    let running = Controller::new("ipaddresses", move |key: Str| {
        let repair = repair.clone();
        async move { repair.look_at_address(&key).await }
    })
    .watches(&addresses.cache, |change| vec![change.key()])
    .every(INTERVAL)
    .workers(WORKERS)
    .metrics(&context.metrics)
    .start(&context.tasks);
    running.settled().await;
}

struct AddressRepair {
    services: Arc<Services>,
}

impl AddressRepair {
    fn service(&self, namespace: &str, name: &str) -> Option<Value> {
        self.services.objects.cached("", "services", namespace, name).and_then(|service| parse(&service))
    }

    fn object(&self, address: &str) -> Option<Value> {
        self.services.objects.cached(GROUP, "ipaddresses", "", address).and_then(|object| parse(&object))
    }

    async fn look_at_service(&self, key: &str) -> Result<Next, String> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let Some(service) = self.service(namespace, name) else { return Ok(Next::Done) };
        for address in view::addresses(&service) {
            if !self.services.addresses.knows(address) {
                tracing::error!(%address, namespace, name, "the address of a service is in no range");
                continue;
            }
            let Some(object) = self.object(&address.to_string()) else {
                tracing::warn!(%address, namespace, name, "the address of a service was not taken");
                self.take(&service, address).await?;
                continue;
            };
            match self.judge(&object, &service, address) {
                Holding::Right => {}
                Holding::Duplicate => {
                    tracing::error!(%address, namespace, name, "a service has an address that is another's");
                }
                Holding::Wrong => {
                    tracing::warn!(%address, namespace, name, "the address of a service was taken for something else");
                    self.services.addresses.release_object(&object).await;
                    self.take(&service, address).await?;
                }
            }
        }
        Ok(Next::Done)
    }

    fn judge(&self, object: &Value, service: &Value, address: IpAddr) -> Holding {
        if !is_of_service(object) {
            return Holding::Wrong;
        }
        let (namespace, name) = parent(object);
        if (namespace, name) != (service.meta().namespace(), service.meta().name()) {
            let other = self.service(namespace, name);
            return match other.is_some_and(|other| view::addresses(&other).contains(&address)) {
                true => Holding::Duplicate,
                false => Holding::Wrong,
            };
        }
        let family = object.meta().label("ipaddress.kubernetes.io/ip-family");
        match is_ours(object) && family == Some(view::family_of(address)) {
            true => Holding::Right,
            false => Holding::Wrong,
        }
    }

    async fn take(&self, service: &Value, address: IpAddr) -> Result<(), String> {
        match self.services.addresses.take(service, address).await {
            Ok(()) | Err(AddressError::Taken) => Ok(()),
            Err(why) => Err(format!("the address {address} of a service cannot be taken: {why}")),
        }
    }

    async fn look_at_address(&self, name: &str) -> Result<Next, String> {
        let Some(object) = self.object(name).filter(is_ours) else { return Ok(Next::Done) };
        let (namespace, service) = parent(&object);
        if is_of_service(&object) {
            if let Some(wait) = self.wait_for_service(&object) {
                return Ok(wait);
            }
            tracing::warn!(address = name, namespace, service, "an address without a service is given back");
        } else {
            tracing::warn!(address = name, "an address of services that is taken for something else is given back");
        }
        self.services.addresses.release_object(&object).await;
        Ok(Next::Done)
    }

    /// `None` if the address is held for nobody.
    fn wait_for_service(&self, object: &Value) -> Option<Next> {
        let (namespace, name) = parent(object);
        let created = |object: &Value| object.meta().creation_timestamp().unwrap_or(Time::ZERO);
        let now = self.services.objects.resource(GROUP, "ipaddresses")?.clock.now();
        let age = now.since(created(object));
        let until = |limit: Span| (age < limit).then(|| Next::After(pause(limit, age)));
        let Some(service) = self.service(namespace, name) else { return until(REQUEST) };
        if view::texts(&service, "clusterIPs").contains(&object.meta().name()) {
            return Some(Next::Done);
        }
        if view::text(&service, "type") == view::EXTERNAL_NAME
            && let Some(later) = until(REQUEST)
        {
            return Some(later);
        }
        if created(object) > created(&service) { until(REVERSAL) } else { None }
    }
}

/// How an address is held, seen from a service that has it.
enum Holding {
    Right,
    /// For another service that has it, too.
    Duplicate,
    /// For something that has it not.
    Wrong,
}

/// What is left of `limit`.
fn pause(limit: Span, age: Span) -> Duration {
    let left = limit.as_nanos().saturating_sub(age.as_nanos());
    Duration::from_nanos(u64::try_from(left).unwrap_or_default())
}

fn parent(object: &Value) -> (&str, &str) {
    let parent = |key: &str| object.str_at(&["spec", "parentRef", key]);
    (parent("namespace"), parent("name"))
}

fn is_of_service(object: &Value) -> bool {
    let parent = |key: &str| object.str_at(&["spec", "parentRef", key]);
    parent("group").is_empty() && parent("resource") == "services"
}

/// Taken by an allocator for a service; others may use such objects for things of their own.
fn is_ours(object: &Value) -> bool {
    object.meta().label("ipaddress.kubernetes.io/managed-by") == Some("ipallocator.k8s.io")
}
