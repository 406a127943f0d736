//! Addresses: of this server and of services.

use crate::flags::Flags;
use crate::flags::kind::PortRange;
use kubelith_features::FeatureGates;
use kubelith_kube::bootstrap::EndpointReconciler;
use kubelith_tls::local_names;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// Under which the cluster reaches this server.
    pub advertise_address: IpAddr,
    /// One or two, of different families.
    pub service_ranges: Vec<Cidr>,
    pub service_node_ports: PortRange,
    /// 0: the kubernetes service is of type ClusterIP.
    pub kubernetes_service_node_port: i64,
    pub endpoint_reconciler: EndpointReconciler,
    /// Under which other servers reach this one, if not under the address above.
    pub peer: Option<SocketAddr>,
    /// `--apiserver-count`.
    servers: i64,
}

/// A block of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    pub base: IpAddr,
    pub prefix: u8,
}

impl Cidr {
    pub fn parse(text: &str) -> Option<Cidr> {
        let (address, prefix) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if prefix > bits {
            return None;
        }
        let host_bits = u32::from(bits - prefix);
        let base = match address {
            IpAddr::V4(a) => IpAddr::V4((a.to_bits() & u32::MAX.checked_shl(host_bits).unwrap_or(0)).into()),
            IpAddr::V6(a) => IpAddr::V6((a.to_bits() & u128::MAX.checked_shl(host_bits).unwrap_or(0)).into()),
        };
        Some(Cidr { base, prefix })
    }

    /// Bits of its addresses that differ from one to the next.
    fn host_bits(&self) -> u8 {
        self.address_bits() - self.prefix
    }

    fn address_bits(&self) -> u8 {
        if self.base.is_ipv4() { 32 } else { 128 }
    }

    /// The address `n` behind the base.
    pub fn nth(&self, n: u32) -> IpAddr {
        match self.base {
            IpAddr::V4(a) => IpAddr::V4(a.to_bits().wrapping_add(n).into()),
            IpAddr::V6(a) => IpAddr::V6(a.to_bits().wrapping_add(n.into()).into()),
        }
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

/// Eight addresses, and a million.
const SMALLEST_RANGE_BITS: u8 = 3;
const LARGEST_RANGE_BITS: u8 = 20;
const DEFAULT_SERVICE_RANGE: &str = "10.0.0.0/24";

impl NetworkOptions {
    pub fn from_flags(flags: &Flags) -> Result<NetworkOptions, String> {
        let ranges = flags.text("service-cluster-ip-range");
        let ranges = if ranges.is_empty() { DEFAULT_SERVICE_RANGE.to_owned() } else { ranges };
        let mut service_ranges = Vec::new();
        for (i, text) in ranges.split(',').enumerate() {
            let what = if i == 0 { "a valid cidr" } else { "an ip net" };
            let range = Cidr::parse(text).ok_or_else(|| format!("service-cluster-ip-range[{i}] is not {what}"))?;
            service_ranges.push(range);
        }
        if service_ranges[0].host_bits() < SMALLEST_RANGE_BITS {
            let least = 1 << SMALLEST_RANGE_BITS;
            return Err(format!(
                "error determining service IP ranges for primary service cidr: the service cluster IP range must be at \
                 least {least} IP addresses"
            ));
        }
        Ok(NetworkOptions {
            advertise_address: advertise_address(flags),
            service_ranges,
            service_node_ports: PortRange::parse(&flags.text("service-node-port-range"))?,
            kubernetes_service_node_port: flags.int("kubernetes-service-node-port"),
            endpoint_reconciler: endpoint_reconciler(flags),
            peer: peer(flags),
            servers: flags.int("apiserver-count"),
        })
    }

    /// The address of the kubernetes service: the first of the first range.
    pub fn kubernetes_service_address(&self) -> IpAddr {
        self.service_ranges[0].nth(1)
    }

    /// `--peer-advertise-ip` and `--peer-advertise-port`, or where everybody reaches this server.
    pub fn peer_address(&self, secure_port: u16) -> SocketAddr {
        self.peer.unwrap_or_else(|| SocketAddr::new(self.advertise_address, secure_port))
    }

    pub fn check(&self, features: &FeatureGates, errors: &mut Vec<String>) {
        let ranges = &self.service_ranges;
        if ranges.len() > 2 {
            errors.push("--service-cluster-ip-range must not contain more than two entries".into());
        }
        // Servers that keep a bitmap of all addresses cannot do with more.
        let limited = !features.enabled("MultiCIDRServiceAllocator") || !features.enabled("DisableAllocatorDualWrite");
        let mut too_large = |range: &Cidr, flag: &str| {
            if limited && range.host_bits() > LARGEST_RANGE_BITS {
                let bits = range.address_bits();
                let mask = bits - LARGEST_RANGE_BITS;
                errors.push(format!(
                    "specified {flag} is too large; for {bits}-bit addresses, the mask must be >= {mask}"
                ));
            }
        };
        too_large(&ranges[0], "--service-cluster-ip-range");
        if let Some(second) = ranges.get(1) {
            too_large(second, "--service-cluster-ip-range[1]");
        }
        if let [first, second, ..] = ranges.as_slice()
            && first.base.is_ipv4() == second.base.is_ipv4()
        {
            errors.push(
                "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family".into(),
            );
        }
        let port = self.kubernetes_service_node_port;
        if !(0..=65535).contains(&port) {
            errors.push(format!(
                "--kubernetes-service-node-port {port} must be between 0 and 65535, inclusive. If 0, the Kubernetes \
                 master service will be of type ClusterIP"
            ));
        }
        if port > 0 && !u16::try_from(port).is_ok_and(|port| self.service_node_ports.contains(port)) {
            let PortRange { base, size } = self.service_node_ports;
            let last = u32::from(base) + size - 1;
            errors.push(format!("kubernetes service node port range {base}-{last} doesn't contain {port}"));
        }
        let first = ranges[0];
        if self.endpoint_reconciler != EndpointReconciler::None
            && first.base.is_ipv4() != self.advertise_address.is_ipv4()
        {
            errors.push(format!(
                "service IP family \"{first}\" must match public address family \"{}\"",
                self.advertise_address
            ));
        }
        let servers = self.servers;
        if servers <= 0 {
            errors.push(format!("--apiserver-count should be a positive number, but value '{servers}' provided"));
        }
    }
}

fn advertise_address(flags: &Flags) -> IpAddr {
    let given = |name: &str| flags.text(name).parse::<IpAddr>().ok().filter(|a| !a.is_unspecified());
    given("advertise-address")
        .or_else(|| given("bind-address").filter(|a| !a.is_loopback()))
        .or_else(local_names::primary_address)
        .or_else(|| given("bind-address"))
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The flag's kind has checked the name.
fn endpoint_reconciler(flags: &Flags) -> EndpointReconciler {
    match flags.text("endpoint-reconciler-type").as_str() {
        "none" => EndpointReconciler::None,
        "master-count" => {
            EndpointReconciler::MasterCount(usize::try_from(flags.int("apiserver-count")).unwrap_or(1).max(1))
        }
        _ => EndpointReconciler::Lease,
    }
}

fn peer(flags: &Flags) -> Option<SocketAddr> {
    let address = flags.text("peer-advertise-ip").parse().ok()?;
    let port = flags.text("peer-advertise-port").parse().ok()?;
    Some(SocketAddr::new(address, port))
}
