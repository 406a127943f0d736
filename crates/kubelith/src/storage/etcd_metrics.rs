//! Metrics of the client of etcd: its calls, under the names that Go's clients have for them, and its leases.

use kubelith_observe::metrics::prometheus::proto::MetricFamily;
use kubelith_observe::metrics::pulled::{PulledFamilies, counter_family, histogram_family};
use kubelith_observe::metrics::{Registry, register};
use kubelith_store::etcd::{CallCounts, EtcdCounts, LeaseCounts, Method};
use std::sync::Arc;

type Told = (&'static str, &'static str);

const STARTED: Told = ("grpc_client_started_total", "Calls that began.");
const HANDLED: Told = ("grpc_client_handled_total", "Calls that ended, by how they did.");
const SENT: Told = ("grpc_client_msg_sent_total", "Messages that were sent.");
const RECEIVED: Told = ("grpc_client_msg_received_total", "Messages that came, and failures in their place.");
const LEASES: Told = ("etcd_lease_object_counts", "Objects that a lease of etcd was given to.");

/// Shows what clients of etcd count.
pub fn show(registry: &Registry, counts: Arc<EtcdCounts>) {
    registry.later(move |registry| {
        let names = [STARTED, HANDLED, SENT, RECEIVED, LEASES];
        register(registry, PulledFamilies::new(&names, move || families(&counts)));
    });
}

fn families(counts: &EtcdCounts) -> Vec<MetricFamily> {
    let calls = |told: Told, read: fn(&CallCounts) -> u64| {
        let series = Method::ALL.into_iter().map(|method| (labels(method), read(counts.of(method))));
        counter_family(told, &series.filter(|(_, count)| *count > 0).collect::<Vec<_>>())
    };
    let handled = Method::ALL.into_iter().flat_map(|method| {
        let ends = counts.of(method).handled();
        ends.map(move |(code, count)| {
            let mut labels = labels(method);
            labels.insert(0, ("grpc_code", code));
            (labels, count)
        })
    });
    let mut families = vec![
        calls(STARTED, CallCounts::started),
        counter_family(HANDLED, &handled.collect::<Vec<_>>()),
        calls(SENT, CallCounts::sent),
        calls(RECEIVED, CallCounts::received),
    ];
    let (buckets, leases, keys) = counts.leases.read();
    if leases > 0 {
        let series: [([(&str, &str); 0], _); 1] = [([], (buckets, leases, keys as f64))];
        families.push(histogram_family(LEASES, &LeaseCounts::BOUNDS, &series));
    }
    families
}

/// In the order of their names.
fn labels(method: Method) -> Vec<(&'static str, &'static str)> {
    let (service, name) = method.names();
    vec![("grpc_method", name), ("grpc_service", service), ("grpc_type", method.kind())]
}
