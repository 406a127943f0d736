//! Addresses and ports.

use kubelith_meta::Value;
use kubelith_rules::cells::network::balancer_addresses;
use kubelith_rules::cells::{Cells, Row, int, joined, strings};

pub const CELLS: Cells =
    &[("service_external_ip", |row| Some(external_ip(row).into())), ("service_ports", service_ports)];

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
