//! Sets right what a crash between two writes can leave: a port that a service has and the pool does not know of, and one
//! that the pool holds for nobody. The same for addresses is beside it.

use super::{Services, address_repair, view};
use kubelith_server::lifecycle::PostStartHook;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(3 * 60);
/// So often something must be seen without an owner before it is given back: whoever is just about to use it, on this
/// server or another, has long done so.
const LOOKS: u32 = 3;

pub fn hook(services: Arc<Services>) -> PostStartHook {
    PostStartHook::new("start-service-ip-repair-controllers", |context| async move {
        address_repair::start(&services, &context).await;
        let mut repair = Repair { services, ports: Suspects::default() };
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
    ports: Suspects<u16>,
}

impl Repair {
    async fn look(&mut self) {
        let services = self.services.objects.list("", "services", "");
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
