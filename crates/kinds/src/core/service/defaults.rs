//! Types, policies, ports and affinity.

use kubelith_meta::{Map, Value};
use kubelith_rules::defaults::{Defaults, elements_mut, is_absent, is_zero, set_absent, text};

pub const RULES: Defaults = &[
    ("io.k8s.api.core.v1.Service", load_balancer_modes),
    ("io.k8s.api.core.v1.ServiceSpec", service),
    ("io.k8s.api.core.v1.ServicePort", target_port),
];

/// For how long a client stays with its pod: three hours.
const AFFINITY_SECONDS: i64 = 10800;

fn service(spec: &mut Map) {
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let timeout = spec.get("sessionAffinityConfig").and_then(|c| c.at(&["clientIP", "timeoutSeconds"]));
            if timeout.is_none_or(Value::is_null) {
                let timeout = Value::from([("timeoutSeconds", AFFINITY_SECONDS)]);
                spec.insert("sessionAffinityConfig", Value::from([("clientIP", timeout)]));
            }
        }
        _ => {}
    }
    let (is_balanced, is_inside) = match text(spec, "type") {
        "LoadBalancer" => (true, true),
        "ClusterIP" | "NodePort" => (false, true),
        _ => (false, false),
    };
    if is_externally_accessible(spec) && is_zero(spec, "externalTrafficPolicy") {
        spec.insert("externalTrafficPolicy", "Cluster");
    }
    if is_inside {
        set_absent(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_balanced {
        set_absent(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn is_externally_accessible(spec: &Map) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !is_zero(spec, "externalIPs"),
        _ => false,
    }
}

/// Without a target the pods listen where the service does.
fn target_port(port: &mut Map) {
    let is_given = match port.get("targetPort") {
        Some(Value::Int(number)) => *number != 0,
        Some(Value::String(name)) => !name.is_empty(),
        _ => false,
    };
    if !is_given {
        let number = port.get("port").cloned().unwrap_or(Value::Int(0));
        port.insert("targetPort", number);
    }
}

/// An address of a load balancer is its own unless it says otherwise.
fn load_balancer_modes(service: &mut Map) {
    // This runs before the type is filled in; no type is no load balancer.
    if service.get("spec").is_none_or(|spec| spec.str_at(&["type"]) != "LoadBalancer") {
        return;
    }
    let balancer = service.get_mut("status").and_then(|s| s.get_mut("loadBalancer")).and_then(Value::as_object_mut);
    if let Some(balancer) = balancer {
        for ingress in elements_mut(balancer, "ingress") {
            if !is_zero(ingress, "ip") && is_absent(ingress, "ipMode") {
                ingress.insert("ipMode", "VIP");
            }
        }
    }
}
