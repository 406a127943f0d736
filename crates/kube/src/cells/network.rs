//! Services and what leads to them.

use super::{CellFn, Row, int, joined, list, strings, with_more};
use kubelith_meta::{Str, Value};
use std::collections::BTreeSet;

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "service_external_ip" => |row| Some(external_ip(row).into()),
        "service_ports" => service_ports,
        "endpoints" => endpoints,
        "slice_ports" => slice_ports,
        "slice_endpoints" => slice_endpoints,
        "ingress_hosts" => ingress_hosts,
        "ingress_address" => |row| Some(balancer_addresses(row).into()),
        "ingress_ports" => |row| Some(if row.list(&["spec", "tls"]).is_empty() { "80" } else { "80, 443" }.into()),
        "ingress_class_parameters" => ingress_class_parameters,
        "ipaddress_parent" => ipaddress_parent,
        _ => return None,
    })
}

/// How many addresses, ports or hosts a cell shows.
const SHOWN: usize = 3;

/// The addresses and names of a load balancer, sorted.
fn balancer_addresses(row: &Row<'_>) -> String {
    let ingress = row.list(&["status", "loadBalancer", "ingress"]).iter();
    let names = ingress.map(|i| if i.str_at(&["ip"]).is_empty() { i.str_at(&["hostname"]) } else { i.str_at(&["ip"]) });
    joined(names.filter(|n| !n.is_empty()).collect::<BTreeSet<_>>(), ",")
}

fn external_ip(row: &Row<'_>) -> String {
    let external = joined(strings(row.list(&["spec", "externalIPs"])), ",");
    let of_balancer = match row.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => None,
        "LoadBalancer" => Some(balancer_addresses(row)),
        "ExternalName" => return row.text(&["spec", "externalName"]).to_owned(),
        _ => return "<unknown>".to_owned(),
    };
    match (of_balancer, external.is_empty()) {
        (None, true) => "<none>".to_owned(),
        (None, false) => external,
        (Some(balancer), true) if balancer.is_empty() => "<pending>".to_owned(),
        (Some(balancer), true) => balancer,
        (Some(balancer), false) if balancer.is_empty() => external,
        (Some(balancer), false) => format!("{balancer},{external}"),
    }
}

fn service_ports(row: &Row<'_>) -> Option<Value> {
    let ports = row.list(&["spec", "ports"]).iter().map(|p| {
        let (port, protocol) = (int(p, &["port"]), p.str_at(&["protocol"]));
        match int(p, &["nodePort"]) {
            node if node > 0 => format!("{port}:{node}/{protocol}"),
            _ => format!("{port}/{protocol}"),
        }
    });
    let ports = ports.collect::<Vec<_>>().join(",");
    Some(if ports.is_empty() { "<none>".into() } else { ports.into() })
}

/// Every address with every port.
fn endpoints(row: &Row<'_>) -> Option<Value> {
    let subsets = row.list(&["subsets"]);
    if subsets.is_empty() {
        return Some("<none>".into());
    }
    let (mut shown, mut count) = (Vec::new(), 0);
    for subset in subsets {
        let addresses = list(subset, &["addresses"]);
        // A headless service may have no ports.
        let ports = match list(subset, &["ports"]) {
            [] => vec![None],
            ports => ports.iter().map(|p| Some(int(p, &["port"]))).collect(),
        };
        for port in ports {
            count += addresses.len();
            for address in addresses.iter().take(SHOWN - shown.len()) {
                shown.push(host_port(address.str_at(&["ip"]), port));
            }
        }
    }
    Some(with_more(&shown, count.saturating_sub(SHOWN)).into())
}

fn host_port(host: &str, port: Option<i64>) -> String {
    match port {
        None => host.to_owned(),
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
    }
}

fn slice_ports(row: &Row<'_>) -> Option<Value> {
    let ports = row.list(&["ports"]).iter().map(|p| match (p.get("port"), p.get("name")) {
        (Some(Value::Int(port)), _) => port.to_string().into(),
        (_, Some(Value::String(name))) => name.clone(),
        _ => "*".into(),
    });
    Some(first_of(ports).into())
}

fn slice_endpoints(row: &Row<'_>) -> Option<Value> {
    let addresses = row.list(&["endpoints"]).iter().flat_map(|e| strings(list(e, &["addresses"])));
    Some(first_of(addresses.map(Str::from)).into())
}

/// The first few, and how many more there are.
pub fn first_of(texts: impl Iterator<Item = Str>) -> String {
    let all: Vec<Str> = texts.collect();
    let shown = &all[..all.len().min(SHOWN)];
    let text = with_more(shown, all.len() - shown.len());
    if text.is_empty() { "<unset>".to_owned() } else { text }
}

fn ingress_hosts(row: &Row<'_>) -> Option<Value> {
    let rules = row.list(&["spec", "rules"]);
    let (mut shown, mut more) = (Vec::new(), 0);
    for rule in rules {
        if shown.len() == SHOWN {
            // Rules without a host count here, as in the reference.
            more = rules.len() - SHOWN;
            break;
        }
        shown.extend(Some(rule.str_at(&["host"])).filter(|h| !h.is_empty()));
    }
    Some(if shown.is_empty() { "*".into() } else { with_more(&shown, more).into() })
}

/// `Kind.group/name`.
fn ingress_class_parameters(row: &Row<'_>) -> Option<Value> {
    let Some(parameters) = row.at(&["spec", "parameters"]) else { return Some("<none>".into()) };
    let (kind, name) = (parameters.str_at(&["kind"]), parameters.str_at(&["name"]));
    Some(match parameters.get("apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}/{name}").into(),
        None => format!("{kind}/{name}").into(),
    })
}

/// `services/namespace/name`.
fn ipaddress_parent(row: &Row<'_>) -> Option<Value> {
    let Some(parent) = row.at(&["spec", "parentRef"]) else { return Some("<none>".into()) };
    let [group, resource, namespace, name] = ["group", "resource", "namespace", "name"].map(|k| parent.str_at(&[k]));
    let mut text = resource.to_lowercase();
    if !group.is_empty() {
        text = format!("{text}.{}", group.to_lowercase());
    }
    if !namespace.is_empty() {
        text = format!("{text}/{namespace}");
    }
    Some(format!("{text}/{name}").into())
}
