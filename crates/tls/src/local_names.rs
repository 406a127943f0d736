//! The names and addresses under which this machine can be reached, for the serving certificate.

use kubelith_system::process;
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// What the machine is called, as a certificate can have it.
pub fn hostname() -> Option<String> {
    let name = process::hostname()?.to_ascii_lowercase();
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    is_name.then_some(name)
}

/// Addresses of the network interfaces, loopback included. Where the kernel does not list them, those that lead out.
pub fn interface_addresses() -> BTreeSet<IpAddr> {
    let v4 = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let v6 = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let listed: BTreeSet<IpAddr> =
        ipv4_of_fib_trie(&v4).map(IpAddr::V4).chain(ipv6_of_if_inet6(&v6).map(IpAddr::V6)).collect();
    if listed.is_empty() { leading_out() } else { listed }
}

/// The addresses that packets to elsewhere would come from. None is sent: such sockets only look for a route.
fn leading_out() -> BTreeSet<IpAddr> {
    // Of networks that are set aside for documentation: nobody is there.
    let elsewhere = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let own = elsewhere.iter().filter_map(|(any, other)| {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(other).ok()?;
        Some(socket.local_addr().ok()?.ip())
    });
    own.filter(|address| !address.is_unspecified()).collect()
}

/// The address that others reach this machine by: the first that is not loopback, IPv4 before IPv6.
pub fn primary_address() -> Option<IpAddr> {
    let all = interface_addresses();
    all.iter().find(|a| a.is_ipv4() && !a.is_loopback()).or_else(|| all.iter().find(|a| !a.is_loopback())).copied()
}

/// Own addresses are the lines `|-- a.b.c.d` that `/32 host LOCAL` follows.
fn ipv4_of_fib_trie(trie: &str) -> impl Iterator<Item = Ipv4Addr> {
    let mut last = None;
    trie.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
            None
        } else if line.contains("/32 host LOCAL") {
            last.take()
        } else {
            None
        }
    })
}

/// Lines of 32 hex digits, device, prefix, scope, flags, name. Link-local addresses are of no use in a
/// certificate: they need a zone.
fn ipv6_of_if_inet6(list: &str) -> impl Iterator<Item = Ipv6Addr> {
    list.lines().filter_map(|line| {
        let bits = u128::from_str_radix(line.split_whitespace().next()?, 16).ok()?;
        let address = Ipv6Addr::from(bits);
        (address.segments()[0] & 0xffc0 != 0xfe80).then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.2.0\n        /24 link UNICAST\n     |-- 10.1.2.3\n        /32 host LOCAL\n     |-- 10.1.2.255\n        /32 link BROADCAST\n";
        assert_eq!(ipv4_of_fib_trie(trie).collect::<Vec<_>>(), [Ipv4Addr::new(10, 1, 2, 3)]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\nfe80000000000000021122fffe334455 02 40 20 80     eth0\n";
        assert_eq!(ipv6_of_if_inet6(list).collect::<Vec<_>>(), [Ipv6Addr::LOCALHOST]);
    }

    /// A machine without a network has none, and one that the kernel lists no addresses of proves nothing.
    #[test]
    fn what_leads_out_is_one_of_the_interfaces() {
        let (listed, leading) = (interface_addresses(), leading_out());
        assert!(leading.is_subset(&listed), "{leading:?} of {listed:?}");
    }
}
