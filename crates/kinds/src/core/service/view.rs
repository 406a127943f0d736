//! What a service says.

use kubelith_meta::Value;
use kubelith_meta::names::parse_ip_sloppy;
use std::net::IpAddr;

pub const EXTERNAL_NAME: &str = "ExternalName";

pub const LOAD_BALANCER: &str = "LoadBalancer";

pub const NODE_PORT: &str = "NodePort";

pub const CLUSTER_IP: &str = "ClusterIP";

/// The cluster IP of services that want none.
pub const NONE: &str = "None";

pub const IPV4: &str = "IPv4";

pub const IPV6: &str = "IPv6";

pub const SINGLE_STACK: &str = "SingleStack";

pub const REQUIRE_DUAL_STACK: &str = "RequireDualStack";

pub const PREFER_DUAL_STACK: &str = "PreferDualStack";

/// A text of the spec, or `""`.
pub fn text<'a>(service: &'a Value, key: &str) -> &'a str {
    service.str_at(&["spec", key])
}

pub fn list<'a>(service: &'a Value, key: &str) -> &'a [Value] {
    service.at(&["spec", key]).and_then(Value::as_array).unwrap_or(&[])
}

pub fn texts<'a>(service: &'a Value, key: &str) -> Vec<&'a str> {
    list(service, key).iter().map(|v| v.as_str().unwrap_or("")).collect()
}

pub fn ports(service: &Value) -> &[Value] {
    list(service, "ports")
}

pub fn needs_cluster_ip(service: &Value) -> bool {
    text(service, "type") != EXTERNAL_NAME
}

pub fn uses_node_ports(service: &Value) -> bool {
    matches!(text(service, "type"), NODE_PORT | LOAD_BALANCER)
}

/// Whether ports without a node port get one.
pub fn allocates_node_ports(service: &Value) -> bool {
    match text(service, "type") {
        NODE_PORT => true,
        LOAD_BALANCER => {
            service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool).unwrap_or(true)
        }
        _ => false,
    }
}

/// Whether the load balancer asks each node if it has an endpoint.
pub fn needs_health_check(service: &Value) -> bool {
    text(service, "type") == LOAD_BALANCER && text(service, "externalTrafficPolicy") == "Local"
}

pub fn is_headless_without_selector(service: &Value) -> bool {
    let selects = service.at(&["spec", "selector"]).and_then(Value::as_object).is_some_and(|s| !s.is_empty());
    text(service, "clusterIP") == NONE && !selects
}

/// The addresses that the service has taken.
pub fn addresses(service: &Value) -> Vec<IpAddr> {
    if !needs_cluster_ip(service) {
        return Vec::new();
    }
    texts(service, "clusterIPs").into_iter().filter_map(parse_ip_sloppy).collect()
}

/// A port, unless it is absent or 0.
pub fn port_number(value: Option<&Value>) -> Option<u16> {
    value.and_then(Value::as_i64).and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

pub fn node_ports(service: &Value) -> Vec<u16> {
    ports(service).iter().filter_map(|port| port_number(port.get("nodePort"))).collect()
}

/// Those of its ports, and that of its health check.
pub fn all_node_ports(service: &Value) -> Vec<u16> {
    let mut ports = node_ports(service);
    ports.extend(port_number(service.at(&["spec", "healthCheckNodePort"])));
    ports
}

pub fn family_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { IPV4 } else { IPV6 }
}

pub fn other_family(family: &str) -> &'static str {
    if family == IPV4 { IPV6 } else { IPV4 }
}
