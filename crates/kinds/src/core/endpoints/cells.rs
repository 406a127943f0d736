//! The first few addresses.

use kubelith_meta::Value;
use kubelith_rules::cells::network::{SHOWN, host_port};
use kubelith_rules::cells::{Cells, Row, int, list, with_more};

pub const CELLS: Cells = &[("endpoints", endpoints)];

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
