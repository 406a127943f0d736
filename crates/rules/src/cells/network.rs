//! Addresses and the like, the first few of them.

use crate::cells::{Row, joined, with_more};
use kubelith_meta::Str;
use std::collections::BTreeSet;

/// How many addresses, ports or hosts a cell shows.
pub const SHOWN: usize = 3;

/// The addresses and names of a load balancer, sorted.
pub fn balancer_addresses(row: &Row<'_>) -> String {
    let ingress = row.list(&["status", "loadBalancer", "ingress"]).iter();
    let names = ingress.map(|i| if i.str_at(&["ip"]).is_empty() { i.str_at(&["hostname"]) } else { i.str_at(&["ip"]) });
    joined(names.filter(|n| !n.is_empty()).collect::<BTreeSet<_>>(), ",")
}

pub fn host_port(host: &str, port: Option<i64>) -> String {
    match port {
        None => host.to_owned(),
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
    }
}

/// The first few, and how many more there are.
pub fn first_of(texts: impl Iterator<Item = Str>) -> String {
    let all: Vec<Str> = texts.collect();
    let shown = &all[..all.len().min(SHOWN)];
    let text = with_more(shown, all.len() - shown.len());
    if text.is_empty() { "<unset>".to_owned() } else { text }
}
