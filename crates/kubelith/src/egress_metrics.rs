//! Connections that are made through the proxies of `--egress-selector-config-file`.

use crate::access::signer_metrics::code_name;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counters, Gauges, Histograms, counters, gauges, histograms};
use kubelith_outbound::egress::{DialObserver, Egress, Reason, Segment, Stage, State, Way};
use std::sync::Arc;
use std::time::Duration;

const BUCKETS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 2.5, 12.5];
const WAY: &[&str] = &["protocol", "transport"];

/// Counts all of them from now on.
pub fn watch(egress: &Egress, registry: &Registry) {
    let observer: Arc<dyn DialObserver> = Arc::new(EgressMetrics::new(registry));
    egress.observe(&observer);
}

#[derive(Debug)]
struct EgressMetrics {
    starts: Counters,
    durations: Histograms,
    failures: Counters,
    packets: Counters,
    stream_errors: Counters,
    tunnel_failures: Counters,
    tunnels: Gauges,
}

impl EgressMetrics {
    fn new(registry: &Registry) -> EgressMetrics {
        let name = |rest: &str| format!("apiserver_egress_dialer_dial_{rest}");
        let tunnels = |rest: &str| format!("konnectivity_network_proxy_client_{rest}");
        EgressMetrics {
            starts: counters(registry, &name("start_total"), "Connections that were begun through proxies.", WAY),
            durations: histograms(
                registry,
                &name("duration_seconds"),
                "Time until a connection through a proxy was made.",
                BUCKETS,
                WAY,
            ),
            failures: counters(
                registry,
                &name("failure_count"),
                "Connections through proxies that failed, by what failed: to reach the proxy, or what it was asked for.",
                &["protocol", "transport", "stage"],
            ),
            packets: counters(
                registry,
                &tunnels("stream_packets_total"),
                "Packets of tunnels through konnectivity, by their way and type.",
                &["segment", "packet_type"],
            ),
            stream_errors: counters(
                registry,
                &tunnels("stream_errors_total"),
                "Tunnels through konnectivity that broke off, by their way, the code and the packet that was sent, if one was.",
                &["segment", "code", "packet_type"],
            ),
            tunnel_failures: counters(
                registry,
                &tunnels("dial_failure_total"),
                "Connections that konnectivity was asked for and did not make, by reason.",
                &["reason"],
            ),
            tunnels: gauges(
                registry,
                &tunnels("client_connections"),
                "Tunnels through konnectivity, by how far they have come.",
                &["status"],
            ),
        }
    }
}

impl DialObserver for EgressMetrics {
    fn started(&self, way: Way) {
        self.starts.with_label_values(&[way.protocol, way.transport]).inc();
    }

    fn done(&self, way: Way, after: Duration) {
        self.durations.with_label_values(&[way.protocol, way.transport]).observe(after.as_secs_f64());
    }

    fn failed(&self, way: Way, stage: Stage) {
        let stage = match stage {
            Stage::Connect => "connect",
            Stage::Proxy => "proxy",
        };
        self.failures.with_label_values(&[way.protocol, way.transport, stage]).inc();
    }

    fn packet(&self, segment: Segment, kind: &'static str) {
        self.packets.with_label_values(&[segment_name(segment), kind]).inc();
    }

    fn stream_failed(&self, code: tonic::Code) {
        self.stream_errors.with_label_values(&[segment_name(Segment::ToClient), code_name(code), "Unknown"]).inc();
    }

    fn tunnel_failed(&self, reason: Reason) {
        let reason = match reason {
            Reason::Timeout => "timeout",
            Reason::Context => "context",
            Reason::Endpoint => "endpoint",
            Reason::DialClosed => "dialclosed",
            Reason::TunnelClosed => "tunnelclosed",
        };
        self.tunnel_failures.with_label_values(&[reason]).inc();
    }

    fn tunnels(&self, state: State, change: i64) {
        let state = match state {
            State::Created => "created",
            State::Dialing => "dialing",
            State::Ok => "ok",
        };
        self.tunnels.with_label_values(&[state]).add(change);
    }
}

fn segment_name(segment: Segment) -> &'static str {
    match segment {
        Segment::FromClient => "from_client",
        Segment::ToClient => "to_client",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and labels are konnectivity's.
    #[test]
    fn tunnels_are_counted() {
        let registry = Registry::new();
        let metrics = EgressMetrics::new(&registry);
        metrics.packet(Segment::FromClient, "DIAL_REQ");
        metrics.stream_failed(tonic::Code::Cancelled);
        metrics.tunnel_failed(Reason::TunnelClosed);
        metrics.tunnels(State::Created, 1);
        metrics.tunnels(State::Created, -1);
        metrics.tunnels(State::Dialing, 1);
        let mut lines = Vec::new();
        for family in registry.gather() {
            for metric in family.get_metric() {
                let labels = metric.get_label().iter().map(|l| format!("{}={}", l.name(), l.value()));
                let value = metric.get_counter().get_value() + metric.get_gauge().get_value();
                lines.push(format!("{}{{{}}} {value}", family.name(), labels.collect::<Vec<_>>().join(",")));
            }
        }
        let want = [
            "client_connections{status=created} 0",
            "client_connections{status=dialing} 1",
            "dial_failure_total{reason=tunnelclosed} 1",
            "stream_errors_total{code=Canceled,packet_type=Unknown,segment=to_client} 1",
            "stream_packets_total{packet_type=DIAL_REQ,segment=from_client} 1",
        ];
        assert_eq!(lines, want.map(|line| format!("konnectivity_network_proxy_client_{line}")));
    }
}
