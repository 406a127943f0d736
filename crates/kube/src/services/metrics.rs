//! What the pools of addresses and ports count.

use super::Services;
use kubelith_meta::names::Cidr;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::prometheus::{DEFAULT_BUCKETS, IntCounter, IntGauge};
use kubelith_observe::metrics::pulled::{PulledFamilies, gauge_family};
use kubelith_observe::metrics::{Counters, Family, Histograms, counters, histograms, register};
use std::sync::{Arc, Weak};
use std::time::Duration;

const ADDRESSES: &str = "kube_apiserver_clusterip_allocator";
const PORTS: &str = "kube_apiserver_nodeport_allocator";

/// Who chose what was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user.
    Static,
    /// The pool.
    Dynamic,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Scope::Static => "static",
            Scope::Dynamic => "dynamic",
        }
    }
}

pub struct PoolMetrics {
    addresses: Counters,
    address_errors: Counters,
    address_seconds: Histograms,
    ports: Counters,
    port_errors: Counters,
    taken_ports: Family<IntGauge>,
    free_ports: Family<IntGauge>,
    pub port_repair_errors: Family<IntCounter>,
}

impl PoolMetrics {
    pub fn new(registry: &Registry) -> PoolMetrics {
        let count = |name: String, help: &str, labels: &[&str]| counters(registry, &name, help, labels);
        let gauge = |name: &'static str, help: &'static str| {
            Family::single(registry, move || IntGauge::new(format!("{PORTS}_{name}"), help)).shown(registry, |_| ())
        };
        let repair_errors = || {
            IntCounter::new(
                "apiserver_nodeport_repair_reconcile_errors_total",
                "Failures to compare the node ports of services with those that are taken.",
            )
        };
        PoolMetrics {
            addresses: count(
                format!("{ADDRESSES}_allocation_total"),
                "Addresses taken for services, by range and by who chose them.",
                &["cidr", "scope"],
            ),
            address_errors: count(
                format!("{ADDRESSES}_allocation_errors_total"),
                "Addresses that could not be taken.",
                &["cidr", "scope"],
            ),
            address_seconds: histograms(
                registry,
                &format!("{ADDRESSES}_allocation_duration_seconds"),
                "Time to take an address, by range.",
                DEFAULT_BUCKETS,
                &["cidr"],
            ),
            ports: count(format!("{PORTS}_allocation_total"), "Node ports taken, by who chose them.", &["scope"]),
            port_errors: count(
                format!("{PORTS}_allocation_errors_total"),
                "Node ports that could not be taken.",
                &["scope"],
            ),
            taken_ports: gauge("allocated_ports", "Node ports that are taken."),
            free_ports: gauge("available_ports", "Node ports that are free."),
            port_repair_errors: Family::single(registry, repair_errors).shown(registry, |_| ()),
        }
    }

    pub fn address(&self, range: Cidr, scope: Scope, outcome: Result<(), ()>, time: Duration) {
        let cidr = range.to_string();
        let counter = if outcome.is_ok() { &self.addresses } else { &self.address_errors };
        counter.with_label_values(&[&cidr, scope.name()]).inc();
        self.address_seconds.with_label_values(&[&cidr]).observe(time.as_secs_f64());
    }

    pub fn port(&self, scope: Scope, outcome: Result<(), ()>) {
        let counter = if outcome.is_ok() { &self.ports } else { &self.port_errors };
        counter.with_label_values(&[scope.name()]).inc();
    }

    /// As the pool was last seen.
    pub fn ports_seen(&self, taken: usize, size: u32) {
        self.taken_ports.set(taken as i64);
        self.free_ports.set(i64::from(size) - taken as i64);
    }
}

/// Shows how full the ranges are; they are looked at when somebody asks.
pub fn watch_ranges(registry: &Registry, services: &Arc<Services>) {
    const TAKEN: (&str, &str) =
        ("kube_apiserver_clusterip_allocator_allocated_ips", "Addresses of services that are taken, by range.");
    const FREE: (&str, &str) =
        ("kube_apiserver_clusterip_allocator_available_ips", "Addresses of services that are free, by range.");
    let services: Weak<Services> = Arc::downgrade(services);
    let read = move || {
        let Some(services) = services.upgrade() else { return Vec::new() };
        let ranges: Vec<(String, f64, f64)> = services
            .addresses
            .usage()
            .into_iter()
            .map(|(range, taken, size)| (range.to_string(), taken as f64, (size - taken.min(size)) as f64))
            .collect();
        let taken: Vec<_> = ranges.iter().map(|(cidr, taken, _)| (Some(("cidr", cidr.as_str())), *taken)).collect();
        let free: Vec<_> = ranges.iter().map(|(cidr, _, free)| (Some(("cidr", cidr.as_str())), *free)).collect();
        vec![gauge_family(TAKEN, &taken), gauge_family(FREE, &free)]
    };
    registry.later(|registry| register(registry, PulledFamilies::new(&[TAKEN, FREE], read)));
}
