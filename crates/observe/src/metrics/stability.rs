//! What kube-apiserver promises of its metrics, which have the same names here: how stable they are, and which are on their way out. It stands
//! before the help of each, and `registered_metrics_total` counts by it.

use super::pulled::{PulledFamilies, counter_family};
use super::{Registry, register};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

const REGISTERED: (&str, &str) =
    ("registered_metrics_total", "Metrics that are known, by how stable they are and since when they are deprecated.");

const STABLE: &[&str] = &[
    "apiserver_admission_controller_admission_duration_seconds",
    "apiserver_admission_step_admission_duration_seconds",
    "apiserver_admission_webhook_admission_duration_seconds",
    "apiserver_current_inflight_requests",
    "apiserver_longrunning_requests",
    "apiserver_request_duration_seconds",
    "apiserver_request_total",
    "apiserver_requested_deprecated_apis",
    "apiserver_response_sizes",
    "apiserver_storage_objects",
    "apiserver_storage_size_bytes",
    "kubernetes_healthcheck",
    "kubernetes_healthchecks_total",
];

const BETA: &[&str] = &[
    "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
    "apiserver_authentication_config_controller_automatic_reloads_total",
    "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
    "apiserver_authorization_config_controller_automatic_reloads_total",
    "apiserver_cel_compilation_duration_seconds",
    "apiserver_cel_evaluation_duration_seconds",
    "apiserver_flowcontrol_current_executing_requests",
    "apiserver_flowcontrol_current_executing_seats",
    "apiserver_flowcontrol_current_inqueue_requests",
    "apiserver_flowcontrol_dispatched_requests_total",
    "apiserver_flowcontrol_nominal_limit_seats",
    "apiserver_flowcontrol_rejected_requests_total",
    "apiserver_flowcontrol_request_wait_duration_seconds",
    "apiserver_storage_events_received_total",
    "apiserver_validating_admission_policy_check_duration_seconds",
    "apiserver_validating_admission_policy_check_total",
    "apiserver_watch_list_duration_seconds",
    "disabled_metrics_total",
    "hidden_metrics_total",
    "kubernetes_build_info",
    "kubernetes_feature_enabled",
    "registered_metrics_total",
    "workqueue_adds_total",
    "workqueue_depth",
    "workqueue_longest_running_processor_seconds",
    "workqueue_queue_duration_seconds",
    "workqueue_retries_total",
    "workqueue_unfinished_work_seconds",
    "workqueue_work_duration_seconds",
];

/// Metrics of which nothing is said: those of the process and of libraries, and our own.
const UNSAID: &[&str] = &["go_", "grpc_", "konnectivity_", "kubelith_", "process_"];
const UNSAID_ALONE: &[&str] = &[
    "apiserver_flowcontrol_demand_seats",
    "apiserver_flowcontrol_priority_level_request_utilization",
    "apiserver_flowcontrol_priority_level_seat_utilization",
    "apiserver_flowcontrol_read_vs_write_current_requests",
];

const DEPRECATED: &[(&str, &str)] = &[("apiserver_storage_objects", "1.34.0")];

/// How stable a metric is, and since which release it is deprecated; empty if it is not.
type Promise = (&'static str, &'static str);

fn promise(name: &str) -> Option<Promise> {
    let deprecated = DEPRECATED.iter().find(|(known, _)| *known == name).map_or("", |(_, since)| since);
    let level = if STABLE.contains(&name) {
        "STABLE"
    } else if BETA.contains(&name) {
        "BETA"
    } else if UNSAID_ALONE.contains(&name) || UNSAID.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    } else {
        "ALPHA"
    };
    Some((level, deprecated))
}

/// The help of a metric, with what is promised of it.
pub(super) fn help(name: &str, help: &str) -> String {
    match promise(name) {
        None => help.to_owned(),
        Some((level, "")) => format!("[{level}] {help}"),
        Some((level, since)) => format!("[{level}] (Deprecated since {since}) {help}"),
    }
}

/// How many metrics are registered.
#[derive(Debug, Clone, Default)]
pub(super) struct Registered(Arc<Mutex<BTreeMap<Promise, u64>>>);

impl Registered {
    pub fn add(&self, name: &str) {
        if let Some(promise) = promise(name) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(promise).or_default() += 1;
        }
    }

    pub fn show(self, registry: &Registry) {
        register(
            registry,
            PulledFamilies::new(&[REGISTERED], move || {
                let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let series = counts.iter().map(|((level, since), count)| {
                    (vec![("deprecated_version", *since), ("stability_level", *level)], *count)
                });
                vec![counter_family(REGISTERED, &series.collect::<Vec<_>>())]
            }),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::{Registry, counters, gauges};

    #[test]
    fn metrics_say_what_is_promised_of_them() {
        let registry = Registry::new();
        registry.later(|registry| registry.registered().show(registry));
        for name in ["apiserver_request_total", "apiserver_storage_objects", "some_total", "more_total"] {
            counters(&registry, name, "Some.", &[]).with_label_values(&[] as &[&str]).inc();
        }
        gauges(&registry, "process_open_fds", "Some.", &[]).with_label_values(&[] as &[&str]).set(1);
        let families = registry.gather();
        let help = |name: &str| families.iter().find(|f| f.name() == name).map_or("", |f| f.help());
        assert_eq!(help("apiserver_request_total"), "[STABLE] Some.");
        assert_eq!(help("apiserver_storage_objects"), "[STABLE] (Deprecated since 1.34.0) Some.");
        assert_eq!(help("some_total"), "[ALPHA] Some.");
        assert_eq!(help("process_open_fds"), "Some.");
        let family = families.iter().find(|f| f.name() == "registered_metrics_total").unwrap();
        let told = family.get_metric().iter().map(|metric| {
            let labels: Vec<&str> = metric.get_label().iter().map(|l| l.value()).collect();
            format!("{} {}", labels.join("/"), metric.get_counter().get_value())
        });
        assert_eq!(told.collect::<Vec<_>>(), ["/ALPHA 2", "/BETA 1", "/STABLE 1", "1.34.0/STABLE 1"]);
    }
}
