//! Probes and lifecycle hooks.

use super::container::Pod;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::is_http_header_name;
use kubelith_meta::{Value, members};
use kubelith_rules::common::{Fields, not_negative, port, port_or_name, supported};

pub fn check_lifecycle(container: &Value, pod: &Pod<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(lifecycle) = container.some("lifecycle") else { return };
    let path = path.child("lifecycle");
    for key in ["postStart", "preStop"] {
        if let Some(hook) = lifecycle.some(key) {
            check_handler(hook, pod.grace_period, &path.child(key), errors);
        }
    }
    if lifecycle.has("stopSignal") && !pod.spec.has("os") {
        let detail = "may not be set for containers with empty `spec.os.name`";
        errors.push(Error::forbidden(&path.child("stopSignal"), detail));
    }
}

pub fn check_probes(container: &Value, pod: &Pod<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    members!(container => liveness: "livenessProbe", readiness: "readinessProbe", startup: "startupProbe");
    for (key, probe) in [("livenessProbe", liveness), ("readinessProbe", readiness), ("startupProbe", startup)] {
        if let Some(probe) = probe.set() {
            check_probe(key, probe, pod.grace_period, &path.child(key), errors);
        }
    }
}

fn check_probe(key: &str, probe: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    check_handler(probe, grace_period, path, errors);
    members!(probe =>
        delay: "initialDelaySeconds",
        timeout: "timeoutSeconds",
        period: "periodSeconds",
        successes: "successThreshold",
        failures: "failureThreshold",
        own_grace_period: "terminationGracePeriodSeconds",
    );
    not_negative(delay.or_zero(), &path.child("initialDelaySeconds"), errors);
    not_negative(timeout.or_zero(), &path.child("timeoutSeconds"), errors);
    not_negative(period.or_zero(), &path.child("periodSeconds"), errors);
    not_negative(successes.or_zero(), &path.child("successThreshold"), errors);
    not_negative(failures.or_zero(), &path.child("failureThreshold"), errors);
    let (own_grace_period, grace_path) = (own_grace_period.as_i64(), path.child("terminationGracePeriodSeconds"));
    if let Some(seconds) = own_grace_period.filter(|s| *s <= 0) {
        errors.push(Error::invalid(&grace_path, seconds, "must be greater than 0"));
    }
    if key == "readinessProbe" {
        if let Some(seconds) = own_grace_period {
            errors.push(Error::invalid(&grace_path, seconds, "must not be set for readinessProbes"));
        }
    } else if successes.or_zero() != 1 {
        errors.push(Error::invalid(&path.child("successThreshold"), successes.or_zero(), "must be 1"));
    }
}

/// One way to act, and only one.
fn check_handler(handler: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    members!(handler => exec: "exec", http: "httpGet", tcp: "tcpSocket", grpc: "grpc", sleep: "sleep");
    let mut count = 0;
    for (key, action) in [("exec", exec), ("httpGet", http), ("tcpSocket", tcp), ("grpc", grpc), ("sleep", sleep)] {
        let Some(action) = action.set() else { continue };
        let path = path.child(key);
        count += 1;
        if count > 1 {
            errors.push(Error::forbidden(&path, "may not specify more than 1 handler type"));
            continue;
        }
        match key {
            "exec" if action.list("command").is_empty() => errors.push(Error::required(&path.child("command"), "")),
            "httpGet" => check_http(action, &path, errors),
            "tcpSocket" => port_or_name(action.get("port"), &path.child("port"), errors),
            "grpc" => port(action.number("port"), &path.child("port"), errors),
            "sleep" => {
                let seconds = action.number("seconds");
                if let Some(grace) = grace_period.filter(|grace| seconds < 0 || seconds > *grace) {
                    let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                    errors.push(Error::invalid(&path, seconds, detail));
                }
            }
            _ => {}
        }
    }
    if count == 0 {
        errors.push(Error::required(path, "must specify a handler type"));
    }
}

fn check_http(action: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    members!(action => target: "path", port: "port", scheme: "scheme", headers: "httpHeaders");
    if target.or_empty().is_empty() {
        errors.push(Error::required(&path.child("path"), ""));
    }
    port_or_name(Some(port), &path.child("port"), errors);
    supported(scheme.or_empty(), &["HTTP", "HTTPS"], &path.child("scheme"), errors);
    for header in headers.items() {
        let name = header.text("name");
        let messages = is_http_header_name(name).into_iter();
        errors.extend(messages.map(|m| Error::invalid(&path.child("httpHeaders"), name, m)));
    }
}
