//! Hosts and addresses.

use kubelith_meta::Value;
use kubelith_rules::cells::network::{SHOWN, balancer_addresses};
use kubelith_rules::cells::{Cells, Row, with_more};

pub const CELLS: Cells = &[
    ("ingress_hosts", ingress_hosts),
    ("ingress_address", |row| Some(balancer_addresses(row).into())),
    ("ingress_ports", |row| Some(if row.list(&["spec", "tls"]).is_empty() { "80" } else { "80, 443" }.into())),
];

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
