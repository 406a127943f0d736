//! Probes and lifecycle hooks.

use super::container::Pod;
use crate::common::{Fields, not_negative, port, port_or_name, supported};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::is_http_header_name;

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
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.some(key) else { continue };
        let path = path.child(key);
        check_probe(probe, pod.grace_period, &path, errors);
        if key == "readinessProbe" {
            if let Some(seconds) = probe.int("terminationGracePeriodSeconds") {
                let detail = "must not be set for readinessProbes";
                errors.push(Error::invalid(&path.child("terminationGracePeriodSeconds"), seconds, detail));
            }
        } else if probe.number("successThreshold") != 1 {
            let threshold = probe.number("successThreshold");
            errors.push(Error::invalid(&path.child("successThreshold"), threshold, "must be 1"));
        }
    }
}

fn check_probe(probe: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    check_handler(probe, grace_period, path, errors);
    for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        not_negative(probe.number(key), &path.child(key), errors);
    }
    if let Some(seconds) = probe.int("terminationGracePeriodSeconds").filter(|s| *s <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(Error::invalid(&path, seconds, "must be greater than 0"));
    }
}

/// One way to act, and only one.
fn check_handler(handler: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut count = 0;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = handler.some(key) else { continue };
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
    if action.text("path").is_empty() {
        errors.push(Error::required(&path.child("path"), ""));
    }
    port_or_name(action.get("port"), &path.child("port"), errors);
    supported(action.text("scheme"), &["HTTP", "HTTPS"], &path.child("scheme"), errors);
    for header in action.list("httpHeaders") {
        let name = header.text("name");
        let messages = is_http_header_name(name).into_iter();
        errors.extend(messages.map(|m| Error::invalid(&path.child("httpHeaders"), name, m)));
    }
}
