//! Ports of a pod's containers that are, or may be taken for, the same.

use super::{ContainerPath, Subject};
use kubelith_meta::text::Quoted;
use kubelith_meta::{Value, members};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// A port, and where it is.
#[derive(Clone, Copy)]
struct Port<'a> {
    at: PortPath<'a>,
    name: &'a str,
    number: i64,
    protocol: &'a str,
    host_ip: &'a str,
    host_port: i64,
}

#[derive(Clone, Copy)]
struct PortPath<'a> {
    container: ContainerPath<'a>,
    index: usize,
}

impl Display for PortPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.container.fmt(f)?;
        f.write_str(".ports[")?;
        self.index.fmt(f)?;
        f.write_str("]")
    }
}

impl<'a> Port<'a> {
    fn new(at: PortPath<'a>, port: &'a Value) -> Port<'a> {
        members!(port =>
            name: "name",
            number: "containerPort",
            protocol: "protocol",
            host_ip: "hostIP",
            host_port: "hostPort",
        );
        Port {
            at,
            name: name.or_empty(),
            number: number.or_zero(),
            protocol: protocol.or_empty(),
            host_ip: host_ip.or_empty(),
            host_port: host_port.or_zero(),
        }
    }

    /// What another port with the same number and protocol is to this one.
    fn conflict_with(&self, other: &Port<'_>) -> Option<&'static str> {
        if (self.host_ip, self.host_port) == (other.host_ip, other.host_port) {
            Some("duplicate")
        } else if self.host_port == 0 || other.host_port == 0 {
            Some("overlapping")
        } else if self.host_port == other.host_port && self.host_ip.is_empty() != other.host_ip.is_empty() {
            Some("dangerously ambiguous")
        } else {
            None
        }
    }

    /// As Go prints a struct: the reference shows it so.
    fn in_go(&self) -> String {
        let Port { name, number, protocol, host_ip, host_port, .. } = self;
        format!("{{Name:{name} HostPort:{host_port} ContainerPort:{number} Protocol:{protocol} HostIP:{host_ip}}}")
    }
}

impl Subject<'_> {
    pub(super) fn ports(&self, out: &mut Vec<String>) {
        let of = |container| {
            let path = self.path(container);
            let ports = container.ports.iter().enumerate();
            ports.map(move |(index, port)| Port::new(PortPath { container: path, index }, port))
        };
        let all: Vec<Port<'_>> = self.containers.iter().flat_map(of).collect();
        let mut by_number: BTreeMap<(i64, &str), Vec<&Port<'_>>> = BTreeMap::new();
        for port in &all {
            let at = port.at;
            if !port.host_ip.is_empty() && port.host_port == 0 {
                out.push(format!("{at}: hostIP set without hostPort: {}", port.in_go()));
            }
            let others = by_number.entry((port.number, port.protocol)).or_default();
            for other in others.iter() {
                if let Some(conflict) = port.conflict_with(other) {
                    out.push(format!("{at}: {conflict} port definition with {}", other.at));
                }
            }
            others.push(port);
        }
        let mut by_name: BTreeMap<&str, PortPath<'_>> = BTreeMap::new();
        for Port { name, at, .. } in all.iter().filter(|port| !port.name.is_empty()) {
            match by_name.get(name) {
                Some(other) => out.push(format!(
                    "{at}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                    Quoted(name)
                )),
                None => drop(by_name.insert(name, *at)),
            }
        }
    }
}
