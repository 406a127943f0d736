//! What is counted of logs and of streams to kubelets.

use super::ConnectKind;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counters, counters};

const NONE: &[&str] = &[];

pub struct ConnectMetrics {
    translated: Counters,
    tunneled: Counters,
    routed: Counters,
    logs: Counters,
    untrusted: Counters,
}

/// Who makes of a WebSocket what the container sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Translator {
    Kubelet,
    Server,
}

impl ConnectMetrics {
    pub fn new(registry: &Registry) -> ConnectMetrics {
        let count = |name: &str, help: &str, labels: &[&str]| counters(registry, name, help, labels);
        ConnectMetrics {
            translated: count(
                "apiserver_stream_translator_requests_total",
                "Commands whose WebSocket was translated for the kubelet, by how that ended.",
                &["code"],
            ),
            tunneled: count(
                "apiserver_stream_tunnel_requests_total",
                "Port-forwards that were taken out of a WebSocket for the kubelet, by its answer.",
                &["code"],
            ),
            routed: count(
                "apiserver_websocket_streaming_requests_total",
                "Streams to kubelets, by who translates WebSockets for them.",
                &["subresource", "proxy_type"],
            ),
            logs: count(
                "kube_apiserver_pod_logs_insecure_backend_total",
                "Requests for logs, by whether the kubelet's certificate is checked.",
                &["usage"],
            ),
            untrusted: count(
                "kube_apiserver_pod_logs_backend_tls_failure_total",
                "Requests for logs that failed because the kubelet's certificate is not trusted.",
                NONE,
            ),
        }
    }

    pub fn translated(&self, code: u16) {
        self.translated.with_label_values(&[code.to_string()]).inc();
    }

    pub fn tunneled(&self, code: u16) {
        self.tunneled.with_label_values(&[code.to_string()]).inc();
    }

    pub(super) fn routed(&self, kind: ConnectKind, translator: Translator) {
        let subresource = match kind {
            ConnectKind::Exec => "exec",
            ConnectKind::Attach => "attach",
            _ => "portforward",
        };
        let translator = match translator {
            Translator::Kubelet => "proxied_to_kubelet",
            Translator::Server => "translated_at_apiserver",
        };
        self.routed.with_label_values(&[subresource, translator]).inc();
    }

    /// The count of failures is shown from the first request on.
    pub fn log(&self, insecure: bool) {
        self.logs.with_label_values(&[if insecure { "skip_tls_allowed" } else { "enforce_tls" }]).inc();
        self.untrusted.with_label_values(NONE);
    }

    /// Why a kubelet could not be asked for a log.
    pub fn log_failed(&self, why: &str) {
        if why.contains("x509:") {
            self.untrusted.with_label_values(NONE).inc();
        }
    }
}
