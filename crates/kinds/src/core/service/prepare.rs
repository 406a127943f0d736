//! Fields that depend on each other.

use crate::core::service::view::{
    CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, allocates_node_ports, list, needs_cluster_ip, needs_health_check,
    node_ports, port_number, ports, text, uses_node_ports,
};
use kubelith_meta::Value;
use std::collections::{HashMap, HashSet};

/// A name elsewhere has no traffic inside the cluster. The reference stores the policy and never shows it.
pub fn drop_traffic_inside(service: &mut Value) {
    if text(service, "type") == EXTERNAL_NAME {
        unset(service, "internalTrafficPolicy");
    }
}

/// Clients may know clusterIP alone, or clusterIPs as well: what they left is filled from what they changed.
pub fn normalize_cluster_ips(service: &mut Value, old: Option<&Value>) {
    let given = text(service, "clusterIP").to_owned();
    let Some(old) = old else {
        if !given.is_empty() && list(service, "clusterIPs").is_empty() {
            set(service, "clusterIPs", vec![given].into());
        }
        return;
    };
    let before = text(old, "clusterIP");
    if list(service, "clusterIPs").is_empty() && !list(old, "clusterIPs").is_empty() && given == before {
        set(service, "clusterIPs", Value::Array(list(old, "clusterIPs").to_vec()));
    }
    if given != before && list(service, "clusterIPs") == list(old, "clusterIPs") {
        if given.is_empty() {
            unset(service, "clusterIPs");
        } else {
            set(service, "clusterIPs", vec![given].into());
        }
    }
}

/// Clients that replace a service without naming what was allocated to it mean to keep it.
pub fn patch_allocated(service: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(service) {
        if text(service, "clusterIP").is_empty() && !text(old, "clusterIP").is_empty() {
            set(service, "clusterIP", text(old, "clusterIP").into());
        }
        if list(service, "clusterIPs").is_empty() && !list(old, "clusterIPs").is_empty() {
            set(service, "clusterIPs", Value::Array(list(old, "clusterIPs").to_vec()));
        }
    }
    if wants_node_ports(old) && wants_node_ports(service) {
        patch_node_ports(service, old);
    }
    let health = |s: &Value| port_number(s.at(&["spec", "healthCheckNodePort"]));
    if needs_health_check(old)
        && needs_health_check(service)
        && let (None, Some(port)) = (health(service), health(old))
    {
        set(service, "healthCheckNodePort", i64::from(port).into());
    }
}

fn wants_node_ports(service: &Value) -> bool {
    allocates_node_ports(service)
}

/// Ports keep their node ports by name, unless another port has taken it over.
fn patch_node_ports(service: &mut Value, old: &Value) {
    let used: HashSet<u16> = node_ports(old).into_iter().collect();
    let taken: HashSet<u16> = node_ports(service).into_iter().filter(|port| used.contains(port)).collect();
    let by_name: HashMap<String, u16> = ports(old)
        .iter()
        .filter_map(|port| Some((port.str_at(&["name"]).to_owned(), port_number(port.get("nodePort"))?)))
        .collect();
    for port in service.at_mut(&["spec", "ports"]).and_then(Value::as_array_mut).into_iter().flatten() {
        if port_number(port.get("nodePort")).is_none()
            && let Some(kept) = by_name.get(port.str_at(&["name"])).filter(|kept| !taken.contains(kept))
        {
            port.set_at(&["nodePort"], i64::from(*kept).into());
        }
    }
}

/// After a change of type, fields that have no meaning any more go, if the client left them as they were.
pub fn drop_type_dependent(service: &mut Value, old: &Value) {
    let same = |service: &Value, key: &str| service.at(&["spec", key]) == old.at(&["spec", key]);
    if needs_cluster_ip(old) && !needs_cluster_ip(service) {
        if same(service, "clusterIP") && same(service, "clusterIPs") {
            unset(service, "clusterIP");
            unset(service, "clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if same(service, key) {
                unset(service, key);
            }
        }
    }
    if uses_node_ports(old) && !uses_node_ports(service) {
        let known = node_ports(old);
        if node_ports(service).iter().all(|port| known.contains(port)) {
            for port in service.at_mut(&["spec", "ports"]).and_then(Value::as_array_mut).into_iter().flatten() {
                port.remove_at(&["nodePort"]);
            }
        }
    }
    if needs_health_check(old) && !needs_health_check(service) && same(service, "healthCheckNodePort") {
        unset(service, "healthCheckNodePort");
    }
    let balances = |s: &Value| text(s, "type") == LOAD_BALANCER;
    if balances(old) && !balances(service) {
        for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(service, key) {
                unset(service, key);
            }
        }
    }
    if is_external(old) && !is_external(service) && same(service, "externalTrafficPolicy") {
        unset(service, "externalTrafficPolicy");
    }
    if !balances(service) {
        service.set_at(&["status", "loadBalancer"], Value::object());
    }
}

/// Whether the service is reached from outside of the cluster.
fn is_external(service: &Value) -> bool {
    uses_node_ports(service) || (text(service, "type") == CLUSTER_IP && !list(service, "externalIPs").is_empty())
}

fn set(service: &mut Value, key: &str, value: Value) {
    service.set_at(&["spec", key], value);
}

fn unset(service: &mut Value, key: &str) {
    service.remove_at(&["spec", key]);
}
