//! Ports of a pod's containers that are, or may be taken for, the same.

use super::{ContainerPath, Subject};
use Part::{At, Text};
use kubelith_meta::text::quote;
use kubelith_meta::{Value, members};
use std::collections::HashMap;
use std::hash::Hash;

/// Clients are shown 4096 characters of warnings at most, so more than so many serve nobody. A pod can have a hundred
/// thousand ports, and pairs of them without end.
const MAX_WARNINGS: usize = 4096;
/// A port is compared with so many of the same number.
const MAX_TWINS: usize = 100;

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

/// Parts of a warning: put together without a formatter.
enum Part<'a> {
    At(PortPath<'a>),
    Text(&'a str),
}

fn sentence(parts: &[Part<'_>]) -> String {
    let mut out = String::with_capacity(160);
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::At(PortPath { container, index }) => {
                for text in [container.prefix, "spec.", container.list, "["] {
                    out.push_str(text);
                }
                push_number(&mut out, container.index);
                out.push_str("].ports[");
                push_number(&mut out, *index);
                out.push(']');
            }
        }
    }
    out
}

fn push_number(out: &mut String, number: usize) {
    match number {
        0..10 => out.push(char::from(b'0' + number as u8)),
        _ => out.push_str(&number.to_string()),
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
    /// Those with the same number, then those with the same name.
    pub(super) fn ports(&self, out: &mut Vec<String>) {
        let mut all = Vec::new();
        for container in &self.containers {
            let path = self.path(container);
            for (index, port) in container.ports.iter().enumerate() {
                all.push(Port::new(PortPath { container: path, index }, port));
            }
        }
        let numbers = Twins::new(&all, |port| (port.number, port.protocol));
        for (i, port) in all.iter().enumerate() {
            if out.len() > MAX_WARNINGS {
                return;
            }
            if !port.host_ip.is_empty() && port.host_port == 0 {
                out.push(sentence(&[At(port.at), Text(": hostIP set without hostPort: "), Text(&port.in_go())]));
            }
            for other in numbers.before(i).take(MAX_TWINS) {
                if let Some(conflict) = port.conflict_with(other) {
                    let parts = [At(port.at), Text(": "), Text(conflict), Text(" port definition with "), At(other.at)];
                    out.push(sentence(&parts));
                }
            }
        }
        let names = Twins::new(&all, |port| port.name);
        for (i, port) in all.iter().enumerate().filter(|(_, port)| !port.name.is_empty()) {
            if let Some(first) = names.before(i).next() {
                out.push(sentence(&[
                    At(port.at),
                    Text(": duplicate port name "),
                    Text(&quote(port.name)),
                    Text(" with "),
                    At(first.at),
                    Text(", services and probes that select ports by name will use "),
                    At(first.at),
                ]));
            }
        }
    }
}

/// Ports that share a key. Few are compared with each other faster than they are put into a table.
struct Twins<'p, 'a, K> {
    all: &'p [Port<'a>],
    key: fn(&Port<'a>) -> K,
    /// The places of ports with a key.
    table: Option<HashMap<K, Vec<usize>>>,
}

impl<'p, 'a, K: Copy + Eq + Hash> Twins<'p, 'a, K> {
    const FEW: usize = 32;

    fn new(all: &'p [Port<'a>], key: fn(&Port<'a>) -> K) -> Self {
        let table = (all.len() > Self::FEW).then(|| {
            let mut table: HashMap<K, Vec<usize>> = HashMap::new();
            for (i, port) in all.iter().enumerate() {
                table.entry(key(port)).or_default().push(i);
            }
            table
        });
        Twins { all, key, table }
    }

    /// Those of a port that come before it, in their order.
    fn before(&self, port: usize) -> impl Iterator<Item = &'p Port<'a>> {
        let Twins { all, key, table } = self;
        let own = key(&all[port]);
        let places = table.as_ref().map(|table| table[&own].as_slice());
        let place = move |i: usize| places.map_or(i, |places| places[i]);
        let earlier = (0..).map(place).take_while(move |place| *place < port).map(|place| &all[place]);
        earlier.filter(move |other| key(other) == own)
    }
}

#[cfg(test)]
mod tests {
    use super::super::of_pod;
    use kubelith_meta::Value;

    fn pod(ports: Vec<Value>) -> Value {
        let container = Value::from([("name", Value::from("c")), ("ports", Value::Array(ports))]);
        Value::from([("spec", Value::from([("containers", Value::Array(vec![container]))]))])
    }

    fn port(name: &str, number: i64, host_port: i64) -> Value {
        let numbers = [("containerPort", number), ("hostPort", host_port)].map(|(key, n)| (key, Value::Int(n)));
        Value::from([
            ("name", Value::from(name)),
            ("protocol", Value::from("TCP")),
            numbers[0].clone(),
            numbers[1].clone(),
        ])
    }

    #[test]
    fn many_ports_make_a_bounded_number_of_warnings() {
        let of = |host_port: fn(i64) -> i64| of_pod(&pod((0..20_000).map(|i| port("", 80, host_port(i))).collect()));
        let warnings = of(|_| 0);
        assert!((super::MAX_WARNINGS..super::MAX_WARNINGS + 2 * super::MAX_TWINS).contains(&warnings.len()));
        assert_eq!(of(|i| i + 1), [""; 0], "and those that do not meet are told so in time");
    }

    #[test]
    fn ports_that_meet() {
        let at = |i: usize| format!("spec.containers[0].ports[{i}]");
        let mut ports = vec![port("a", 80, 0), port("b", 80, 8080), port("a", 81, 0), port("", 80, 0), port("", 82, 0)];
        let expected = |last: usize| {
            let mut all = vec![
                format!("{}: overlapping port definition with {}", at(1), at(0)),
                format!("{}: duplicate port definition with {}", at(3), at(0)),
                format!("{}: overlapping port definition with {}", at(3), at(1)),
            ];
            for (i, other) in [(2, 0), (last, 0)].into_iter().filter(|(i, _)| *i > 0) {
                let (at, other) = (at(i), at(other));
                let why = format!("services and probes that select ports by name will use {other}");
                all.push(format!("{at}: duplicate port name \"a\" with {other}, {why}"));
            }
            all
        };
        assert_eq!(of_pod(&pod(ports.clone())), expected(0));
        // So many are looked up.
        ports.extend((0..50).map(|i| port("", 1000 + i, 0)));
        ports.push(port("a", 83, 0));
        assert_eq!(of_pod(&pod(ports)), expected(55));
    }
}
