//! Sets right what a crash between two writes can leave: an address or port that a service has and the pool does not know
//! of, and one that the pool holds for nobody.

use super::addresses::AddressError;
use super::{Services, view};
use kubelith_meta::Value;
use kubelith_server::lifecycle::PostStartHook;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(3 * 60);
/// So often something must be seen without an owner before it is given back: whoever is just about to use it, on this
/// server or another, has long done so.
const LOOKS: u32 = 3;
const GROUP: &str = "networking.k8s.io";

pub fn hook(services: Arc<Services>) -> PostStartHook {
    PostStartHook::new("start-service-ip-repair-controllers", |context| async move {
        let mut repair = Repair { services, addresses: Suspects::default(), ports: Suspects::default() };
        repair.look().await;
        context.tasks.spawn_until_stopped("service-ip-repair", async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                repair.look().await;
            }
        });
        Ok(())
    })
}

struct Repair {
    services: Arc<Services>,
    addresses: Suspects<IpAddr>,
    ports: Suspects<u16>,
}

impl Repair {
    async fn look(&mut self) {
        let services = self.services.objects.list("", "services", "");
        self.look_at_addresses(&services).await;
        self.look_at_ports(&services).await;
    }

    async fn look_at_addresses(&mut self, services: &[Value]) {
        let objects = &self.services.objects;
        let taken: BTreeMap<IpAddr, Value> = objects
            .list(GROUP, "ipaddresses", "")
            .into_iter()
            .filter_map(|object| Some((object.meta().name().parse().ok()?, object)))
            .collect();
        let mut used = BTreeSet::new();
        for service in services {
            for address in view::addresses(service) {
                used.insert(address);
                match taken.get(&address) {
                    None => self.take(service, address).await,
                    Some(object) if !is_of(object, service) => {
                        let (namespace, name) = (service.meta().namespace(), service.meta().name());
                        tracing::error!(%address, namespace, name, "a service has an address that is another's");
                    }
                    Some(_) => {}
                }
            }
        }
        let idle = taken.into_iter().filter(|(address, object)| !used.contains(address) && is_ours(object));
        for address in self.addresses.seen(idle.map(|(address, _)| address)) {
            tracing::warn!(%address, "an address without a service is given back");
            self.services.addresses.release(address).await;
        }
    }

    async fn take(&self, service: &Value, address: IpAddr) {
        let (namespace, name) = (service.meta().namespace(), service.meta().name());
        match self.services.addresses.take(service, address).await {
            Ok(()) => tracing::warn!(%address, namespace, name, "the address of a service was not taken"),
            Err(AddressError::Taken) => {}
            Err(why) => tracing::error!(%address, namespace, name, ?why, "the address of a service cannot be taken"),
        }
    }

    async fn look_at_ports(&mut self, services: &[Value]) {
        let used: BTreeSet<u16> = services.iter().flat_map(view::all_node_ports).collect();
        let taken = match self.services.ports.taken().await {
            Ok(taken) => taken,
            Err(why) => {
                self.services.metrics.port_repair_errors.inc();
                return tracing::error!(%why, "node ports not looked at");
            }
        };
        for port in used.iter().filter(|port| !taken.contains(port)) {
            // Out of the range that the flags allow there is nothing to take.
            if self.services.ports.take(*port).await.is_ok() {
                tracing::warn!(port, "the port of a service was not taken");
            }
        }
        let idle = self.ports.seen(taken.into_iter().filter(|port| !used.contains(port)));
        if !idle.is_empty() {
            tracing::warn!(ports = ?idle, "ports without a service are given back");
            self.services.ports.release(&idle).await;
        }
    }
}

fn is_of(object: &Value, service: &Value) -> bool {
    let parent = |key: &str| object.str_at(&["spec", "parentRef", key]);
    parent("resource") == "services"
        && parent("namespace") == service.meta().namespace()
        && parent("name") == service.meta().name()
}

/// Taken by an allocator for a service; others may use such objects for things of their own.
fn is_ours(object: &Value) -> bool {
    object.meta().label("ipaddress.kubernetes.io/managed-by") == Some("ipallocator.k8s.io")
        && object.str_at(&["spec", "parentRef", "resource"]) == "services"
}

/// What was seen without an owner, and how often in a row.
#[derive(Debug)]
struct Suspects<T>(BTreeMap<T, u32>);

impl<T> Default for Suspects<T> {
    fn default() -> Suspects<T> {
        Suspects(BTreeMap::new())
    }
}

impl<T: Ord + Copy + Hash> Suspects<T> {
    /// Those that have been seen often enough by now.
    fn seen(&mut self, now: impl Iterator<Item = T>) -> Vec<T> {
        self.0 = now.map(|what| (what, self.0.get(&what).copied().unwrap_or_default() + 1)).collect();
        let ripe: Vec<T> = self.0.iter().filter(|(_, looks)| **looks >= LOOKS).map(|(what, _)| *what).collect();
        for what in &ripe {
            self.0.remove(what);
        }
        ripe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_without_an_owner_is_given_back() {
        let mut suspects = Suspects::default();
        assert!(suspects.seen([1, 2].into_iter()).is_empty());
        assert!(suspects.seen([1].into_iter()).is_empty(), "2 was just on its way");
        assert_eq!(suspects.seen([1, 2].into_iter()), [1]);
        assert!(suspects.seen([2].into_iter()).is_empty());
        assert_eq!(suspects.seen([2].into_iter()), [2]);
    }
}
