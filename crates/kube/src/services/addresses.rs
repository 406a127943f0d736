//! Cluster addresses: taken by creating their IPAddress objects, from the ranges that ServiceCIDR objects give.

use super::metrics::{PoolMetrics, Scope};
use kubelith_kinds::core::service::view::{IPV4, family_of};
use kubelith_meta::names::Cidr;
use kubelith_meta::{Map, Status, Str, Time, Value};
use kubelith_registry::{DeleteBy, DeleteOptions, Objects, Wanted};
use kubelith_schema::lifecycle::Preconditions;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

const GROUP: &str = "networking.k8s.io";
/// The ServiceCIDR that the server makes from its own ranges.
const DEFAULT_CIDR: &str = "kubernetes";

pub struct Addresses {
    /// The server's own, first that of services that do not choose.
    ranges: Vec<Cidr>,
    families: Vec<&'static str>,
    objects: Arc<Objects>,
    metrics: Arc<PoolMetrics>,
}

/// Why an address was not to be had.
#[derive(Debug)]
pub enum AddressError {
    /// No address of the family is free.
    Full,
    Taken,
    /// No range has it.
    WrongNetwork,
    NotInRange(IpAddr, Cidr),
    Store(Status),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Full => write!(f, "range is full"),
            AddressError::Taken => write!(f, "provided IP is already allocated"),
            AddressError::WrongNetwork => write!(f, "the provided network does not match the current range"),
            AddressError::NotInRange(ip, range) => {
                write!(f, "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {range}")
            }
            AddressError::Store(status) => write!(f, "{}", status.message),
        }
    }
}

impl Addresses {
    pub fn new(ranges: Vec<Cidr>, objects: Arc<Objects>, metrics: Arc<PoolMetrics>) -> Addresses {
        let families = ranges.iter().map(|range| family_of(range.address)).collect();
        Addresses { ranges, families, objects, metrics }
    }

    /// Each range with the number of its addresses that are taken, and of all.
    pub(super) fn usage(&self) -> Vec<(Cidr, u128, u128)> {
        let Some(resource) = self.objects.resource(GROUP, "ipaddresses") else { return Vec::new() };
        let snapshot = resource.cache.snapshot();
        let taken: Vec<IpAddr> = snapshot.range("", None).filter_map(|object| object.name().parse().ok()).collect();
        let usage = |range: Cidr| {
            let (hosts, taken) = (Hosts::of(range), taken.iter().filter(|address| range.contains(**address)).count());
            (range, taken as u128, (hosts.last + 1).saturating_sub(hosts.first))
        };
        self.ready_ranges().into_iter().map(usage).collect()
    }

    /// The families of the cluster's services, the default one first.
    pub fn families(&self) -> &[&'static str] {
        &self.families
    }

    /// The ranges to take from: those of all ServiceCIDRs that are ready, and the server's own as long as the object
    /// that stands for them is still to be made.
    fn ready_ranges(&self) -> Vec<Cidr> {
        let objects = self.objects.list(GROUP, "servicecidrs", "");
        let mut ranges = Vec::new();
        if !objects.iter().any(|object| object.meta().name() == DEFAULT_CIDR) {
            ranges.extend(&self.ranges);
        }
        ranges.extend(objects.iter().filter(|object| is_ready(object)).flat_map(cidrs_of));
        ranges
    }

    /// What a dry run shows in place of an address.
    pub fn sample(&self, family: &str) -> Option<IpAddr> {
        self.ready_ranges().into_iter().map(|range| range.address).find(|address| family_of(*address) == family)
    }

    /// Takes the address for the service.
    pub async fn take(&self, service: &Value, address: IpAddr) -> Result<(), AddressError> {
        let start = Instant::now();
        let taken = match self.check(address) {
            Ok(()) => self.create(service, address).await,
            refused => refused,
        };
        if let Some(range) = self.ready_ranges().into_iter().find(|range| range.contains(address)) {
            self.count(range, Scope::Static, taken.is_ok(), start);
        }
        taken
    }

    fn count(&self, range: Cidr, scope: Scope, taken: bool, start: Instant) {
        let outcome = if taken { Ok(()) } else { Err(()) };
        self.metrics.address(range, scope, outcome, start.elapsed());
    }

    /// Whether some range could give the address. It may be taken.
    pub fn check(&self, address: IpAddr) -> Result<(), AddressError> {
        let range = self.ready_ranges().into_iter().find(|range| range.contains(address));
        let range = range.ok_or(AddressError::WrongNetwork)?;
        let hosts = Hosts::of(range);
        match (hosts.first..=hosts.last).contains(&number(address)) {
            true => Ok(()),
            false => Err(AddressError::NotInRange(address, range)),
        }
    }

    /// What a dry run checks: the reference asks any one range, and names that if it has not got the address.
    pub fn check_dry(&self, address: IpAddr) -> Result<(), AddressError> {
        self.check(address).map_err(|why| match why {
            AddressError::WrongNetwork => {
                let mut ranges = self.ready_ranges().into_iter();
                let range = ranges.find(|range| family_of(range.address) == family_of(address));
                range.map_or(AddressError::WrongNetwork, |range| AddressError::NotInRange(address, range))
            }
            other => other,
        })
    }

    /// Takes any free address of the family. The start of each range is spared for those who ask for an address by
    /// number: it is used when the rest is full.
    pub async fn take_any(&self, service: &Value, family: &str) -> Result<IpAddr, AddressError> {
        for range in self.ready_ranges().into_iter().filter(|range| family_of(range.address) == family) {
            let (hosts, start) = (Hosts::of(range), Instant::now());
            for (first, last) in hosts.bands() {
                let taken = self.take_between(service, first, last, family).await;
                if !matches!(taken, Ok(None)) {
                    self.count(range, Scope::Dynamic, taken.is_ok(), start);
                }
                if let Some(address) = taken? {
                    return Ok(address);
                }
            }
            self.count(range, Scope::Dynamic, false, start);
        }
        Err(AddressError::Full)
    }

    async fn take_between(
        &self,
        service: &Value,
        first: u128,
        last: u128,
        family: &str,
    ) -> Result<Option<IpAddr>, AddressError> {
        if first > last {
            return Ok(None);
        }
        let size = last - first + 1;
        let made_up = self.objects.resource(GROUP, "ipaddresses").map(|r| r.made_up.clone()).unwrap_or_default();
        let of = [service.meta().namespace(), service.meta().name(), family];
        let start = (u128::from(made_up.bits(&of)) << 64 | u128::from(made_up.bits(&of))) % size;
        for step in 0..size {
            let address = address_of(first + (start + step) % size, family);
            if self.objects.cached(GROUP, "ipaddresses", "", &address.to_string()).is_some() {
                continue;
            }
            match self.create(service, address).await {
                // Another server was faster.
                Err(AddressError::Taken) => continue,
                taken => return taken.map(|()| Some(address)),
            }
        }
        Ok(None)
    }

    async fn create(&self, service: &Value, address: IpAddr) -> Result<(), AddressError> {
        let Some(resource) = self.objects.resource(GROUP, "ipaddresses") else { return Ok(()) };
        let name = address.to_string();
        let mut call = self.objects.own_call(&resource, "", &name);
        call.name = Default::default();
        match resource.create(&call, ip_address(service, address, resource.clock.now()), None, Wanted::Json).await {
            Ok(_) => Ok(()),
            Err(status) if status.is_already_exists() => Err(AddressError::Taken),
            Err(status) => Err(AddressError::Store(status)),
        }
    }

    /// Whether the address is in a range of services, ready or not.
    pub(super) fn knows(&self, address: IpAddr) -> bool {
        let objects = self.objects.list(GROUP, "servicecidrs", "");
        let listed = objects.iter().flat_map(cidrs_of).any(|range| range.contains(address));
        listed || self.ready_ranges().iter().any(|range| range.contains(address))
    }

    /// Gives an address back. One that nobody has is no error.
    pub async fn release(&self, address: IpAddr) {
        self.delete(&address.to_string(), &DeleteOptions::default()).await;
    }

    /// Gives an address back, unless it was taken anew.
    pub(super) async fn release_object(&self, object: &Value) {
        let uid = Some(Str::from(object.meta().uid()));
        let preconditions = Preconditions { uid, ..Preconditions::default() };
        self.delete(object.meta().name(), &DeleteOptions { preconditions, ..DeleteOptions::default() }).await;
    }

    async fn delete(&self, address: &str, options: &DeleteOptions) {
        let Some(resource) = self.objects.resource(GROUP, "ipaddresses") else { return };
        let call = self.objects.own_call(&resource, "", address);
        match resource.delete(&call, options, DeleteBy::Server).await {
            Err(why) if !why.is_not_found() => tracing::error!(why = why.message, address, "release of an address"),
            _ => {}
        }
    }
}

/// The ranges of a ServiceCIDR.
fn cidrs_of(object: &Value) -> impl Iterator<Item = Cidr> {
    let cidrs = object.at(&["spec", "cidrs"]).and_then(Value::as_array).unwrap_or(&[]);
    cidrs.iter().filter_map(Value::as_str).filter_map(Cidr::parse_sloppy).map(Cidr::network)
}

/// Without conditions a ServiceCIDR counts as ready: there may be no controller that sets them.
fn is_ready(object: &Value) -> bool {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[]);
    let ready = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Ready");
    !object.meta().is_being_deleted() && ready.is_none_or(|ready| ready.str_at(&["status"]) == "True")
}

/// The addresses of a range that services can have.
struct Hosts {
    first: u128,
    last: u128,
}

impl Hosts {
    /// Neither the network's own address nor, of IPv4, that of all hosts.
    fn of(range: Cidr) -> Hosts {
        let network = range.network();
        let bits = network.address_bits() - network.prefix;
        let base = number(network.address);
        let end = base + 1u128.checked_shl(bits.into()).map_or(u128::MAX - base, |size| size - 1);
        let last = if network.address.is_ipv4() { end.saturating_sub(1) } else { end };
        Hosts { first: base + 1, last }
    }

    /// The part to take from first, then the spared one: a sixteenth of the range, from 16 to 256 addresses.
    fn bands(&self) -> [(u128, u128); 2] {
        let size = (self.last + 1).saturating_sub(self.first);
        let spared = if size <= 16 { 0 } else { (size / 16).clamp(16, 256) };
        let middle = self.first + spared;
        [(middle, self.last), (self.first, middle.saturating_sub(1))]
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn address_of(number: u128, family: &str) -> IpAddr {
    if family == IPV4 {
        IpAddr::V4(Ipv4Addr::from_bits(number as u32))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits(number))
    }
}

/// The object that takes an address for a service.
fn ip_address(service: &Value, address: IpAddr, now: Time) -> Value {
    const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
    const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
    let meta = service.meta();
    let mut object = Value::from([("apiVersion", "networking.k8s.io/v1"), ("kind", "IPAddress")]);
    object.meta_mut().set_name(&address.to_string());
    object.meta_mut().set_label(FAMILY, family_of(address)).set_label(MANAGED_BY, "ipallocator.k8s.io");
    let parent = Value::from([("name", meta.name()), ("namespace", meta.namespace()), ("resource", "services")]);
    object.set_at(&["spec", "parentRef"], parent);

    let owned = |keys: &[&str]| -> Value {
        let mut set: Map = keys.iter().map(|key| (format!("f:{key}"), Value::object())).collect();
        set.insert(".", Value::object());
        Value::Object(set)
    };
    let mut fields = Value::object();
    fields.set_at(&["f:metadata", "f:labels"], owned(&[FAMILY, MANAGED_BY]));
    fields.set_at(&["f:spec", "f:parentRef"], owned(&["name", "namespace", "resource"]));
    let mut entry = Value::from([
        ("apiVersion", "networking.k8s.io/v1"),
        ("fieldsType", "FieldsV1"),
        ("manager", "kube-apiserver"),
        ("operation", "Update"),
    ]);
    entry.set_at(&["time"], now.rfc3339().into());
    entry.set_at(&["fieldsV1"], fields);
    object.meta_mut().set_managed_fields(vec![entry]);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_bands() {
        let cases = [
            ("10.0.0.0/24", "10.0.0.1", "10.0.0.254", "10.0.0.17"),
            ("10.0.0.0/16", "10.0.0.1", "10.0.255.254", "10.0.1.1"),
            ("10.0.0.0/28", "10.0.0.1", "10.0.0.14", "10.0.0.1"),
            ("fd00::/112", "fd00::1", "fd00::ffff", "fd00::101"),
        ];
        for (range, first, last, middle) in cases {
            let hosts = Hosts::of(Cidr::parse_sloppy(range).unwrap());
            let of = |text: &str| number(text.parse().unwrap());
            assert_eq!((hosts.first, hosts.last), (of(first), of(last)), "{range}");
            assert_eq!(hosts.bands()[0], (of(middle), of(last)), "{range}");
        }
    }

    #[test]
    fn tiny_ranges_have_no_hosts_to_give() {
        let hosts = Hosts::of(Cidr::parse_sloppy("10.0.0.1/32").unwrap());
        assert!(hosts.bands().iter().all(|(first, last)| first > last));
    }
}
