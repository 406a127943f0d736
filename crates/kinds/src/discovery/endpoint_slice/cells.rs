//! Ports and addresses.

use kubelith_meta::{Str, Value};
use kubelith_rules::cells::network::first_of;
use kubelith_rules::cells::{Cells, Row, list, strings};

pub const CELLS: Cells = &[("slice_ports", slice_ports), ("slice_endpoints", slice_endpoints)];

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
