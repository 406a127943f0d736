//! The endpoints of the `kubernetes` service: the servers of this cluster. Endpoints and EndpointSlice are revised by
//! pure functions here; who is in them is for one of three reconcilers to say.

use super::find;
use super::store_leases::{Removal, StoreLeases};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use std::net::IpAddr;

pub const SERVICE: &str = "kubernetes";
pub const NAMESPACE: &str = "default";
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// For an update that others got in the way of.
const ATTEMPTS: usize = 5;

/// `--endpoint-reconciler-type`: how the servers of a cluster agree on who is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointReconciler {
    /// By keys in the store that go away unless refreshed.
    Lease,
    /// Everybody adds itself and removes others beyond this number.
    MasterCount(usize),
    /// Somebody else keeps the endpoints.
    None,
}

/// Whether ports of existing endpoints are put right as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ports {
    Keep,
    Set,
}

/// This server's part in the endpoints.
pub struct Endpoints<'a> {
    pub client: &'a LoopbackClient,
    pub address: IpAddr,
    pub port: u16,
}

impl Endpoints<'_> {
    /// Adds this server and takes out those that are gone.
    pub async fn reconcile(&self, how: EndpointReconciler, leases: &StoreLeases) -> Result<(), String> {
        let own = self.address.to_string();
        match how {
            EndpointReconciler::None => Ok(()),
            EndpointReconciler::Lease => {
                let subset = Value::from([("addresses", addresses([own.as_str()]))]);
                let set = |object: &mut Value| {
                    object.make_object().insert("subsets", vec![subset.clone()]);
                };
                leases.refresh(&own, set).await?;
                let alive = leases.addresses().await?;
                if alive.is_empty() {
                    return Err("no API server IP addresses were listed in storage, refusing to erase all endpoints \
                                for the kubernetes Service"
                        .into());
                }
                self.write(|existing| with_addresses(existing, &alive, self.port, Ports::Keep)).await
            }
            EndpointReconciler::MasterCount(count) => {
                self.write(|existing| with_own(existing, &own, count, self.port)).await
            }
        }
    }

    /// Takes this server out.
    pub async fn remove(&self, how: EndpointReconciler, leases: &StoreLeases) -> Result<Removal, String> {
        let own = self.address.to_string();
        match how {
            EndpointReconciler::None => Ok(Removal::Absent),
            EndpointReconciler::Lease => {
                if leases.remove(&own).await? == Removal::Absent {
                    return Ok(Removal::Absent);
                }
                let alive = leases.addresses().await?;
                let revise = |existing: Option<&Value>| {
                    existing.and_then(|e| with_addresses(Some(e), &alive, self.port, Ports::Set))
                };
                self.write(revise).await.map(|()| Removal::Removed)
            }
            EndpointReconciler::MasterCount(_) => {
                let revise = |existing: Option<&Value>| existing.and_then(|e| without(e, &own, self.port));
                self.write(revise).await.map(|()| Removal::Removed)
            }
        }
    }

    /// Writes what `revise` makes of the endpoints (`None`: they are right), then the slice that mirrors them.
    async fn write(&self, revise: impl Fn(Option<&Value>) -> Option<Value>) -> Result<(), String> {
        let mut attempt = 1;
        loop {
            match self.write_once(&revise).await {
                Err(status) if status.is_conflict() && attempt < ATTEMPTS => attempt += 1,
                done => return done.map_err(|e| e.to_string()),
            }
        }
    }

    async fn write_once(&self, revise: &impl Fn(Option<&Value>) -> Option<Value>) -> Result<(), Status> {
        let resource = GroupVersionResource::new("", "v1", "endpoints");
        let collection = ResourceRef::new(&resource).namespace(NAMESPACE);
        let target = collection.clone().name(SERVICE);
        let existing = find(self.client, &target).await?;
        let now = match (revise(existing.as_ref()), existing) {
            (Some(revised), Some(_)) => self.client.update(&target, &revised).await?,
            (Some(revised), None) => match self.client.create(&collection, &revised).await {
                Err(status) if status.is_already_exists() => return Ok(()),
                created => created?,
            },
            (None, Some(existing)) => existing,
            (None, None) => return Ok(()),
        };
        self.mirror(&now).await
    }

    async fn mirror(&self, endpoints: &Value) -> Result<(), Status> {
        let resource = GroupVersionResource::new("discovery.k8s.io", "v1", "endpointslices");
        let collection = ResourceRef::new(&resource).namespace(NAMESPACE);
        let target = collection.clone().name(SERVICE);
        let wanted = slice_of(endpoints);
        let create = || async {
            match self.client.create(&collection, &wanted).await {
                Err(status) if !status.is_already_exists() => Err(status),
                _ => Ok(()),
            }
        };
        let Some(existing) = find(self.client, &target).await? else { return create().await };
        if existing.str_at(&["addressType"]) != wanted.str_at(&["addressType"]) {
            self.client.delete(&target, None).await?;
            return create().await;
        }
        let same = |path: &[&str]| {
            let (a, b) = (existing.at(path), wanted.at(path));
            a == b || (a.is_none_or(Value::is_empty) && b.is_none_or(Value::is_empty))
        };
        if same(&["endpoints"]) && same(&["ports"]) && same(&["metadata", "labels"]) {
            return Ok(());
        }
        self.client.update(&target, &wanted).await.map(drop)
    }
}

/// The ports of an endpoints subset.
pub fn ports(port: u16) -> Value {
    Value::from(vec![Value::from([
        ("name", Value::from("https")),
        ("port", Value::Int(port.into())),
        ("protocol", "TCP".into()),
    ])])
}

fn addresses<'a>(ips: impl IntoIterator<Item = &'a str>) -> Value {
    Value::from(ips.into_iter().map(|ip| Value::from([("ip", ip)])).collect::<Vec<_>>())
}

/// The endpoints to change, and whether they were not yet marked as ours to mirror.
fn start(existing: Option<&Value>) -> (Value, bool) {
    let new = || Value::from([("metadata", Value::from([("name", SERVICE), ("namespace", NAMESPACE)]))]);
    let mut object = existing.cloned().unwrap_or_else(new);
    let unmarked = object.meta().label(SKIP_MIRROR) != Some("true");
    if unmarked {
        object.meta_mut().set_label(SKIP_MIRROR, "true");
    }
    (object, unmarked)
}

/// The only subset with the addresses in it; `None` if there is another number of subsets.
fn only_subset(object: &Value) -> Option<(&Value, Vec<&str>)> {
    let [subset] = object.get("subsets")?.as_array()? else { return None };
    let list = subset.get("addresses").and_then(Value::as_array).unwrap_or_default();
    Some((subset, list.iter().map(|a| a.str_at(&["ip"])).collect()))
}

/// One subset with these addresses, sorted; none at all without addresses.
fn set_subset(object: &mut Value, mut ips: Vec<&str>, ports: Value) {
    ips.sort_unstable();
    ips.dedup();
    let subset = Value::from([("addresses", addresses(ips.iter().copied())), ("ports", ports)]);
    let subsets = if ips.is_empty() { Vec::new() } else { vec![subset] };
    object.make_object().insert("subsets", subsets);
}

/// Exactly `wanted`.
fn with_addresses(existing: Option<&Value>, wanted: &[String], port: u16, which: Ports) -> Option<Value> {
    let (mut object, unmarked) = start(existing);
    let mut ips: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut kept = ports(port);
    if let Some((subset, current)) = existing.and_then(only_subset) {
        let mut sorted = current.clone();
        sorted.sort_unstable();
        ips.sort_unstable();
        let ports_right = which == Ports::Keep || subset.get("ports") == Some(&kept);
        if sorted == ips && ports_right {
            return unmarked.then_some(object);
        }
        if which == Ports::Keep {
            kept = subset.get("ports").cloned().unwrap_or_default();
        }
    }
    set_subset(&mut object, ips, kept);
    Some(object)
}

/// `own` and as many others as `count` allows; those that sort behind `own` go first.
fn with_own(existing: Option<&Value>, own: &str, count: usize, port: u16) -> Option<Value> {
    let (mut object, unmarked) = start(existing);
    let Some((subset, current)) = existing.and_then(only_subset) else {
        set_subset(&mut object, vec![own], ports(port));
        return Some(object);
    };
    if current.contains(&own) && current.len() <= count {
        return unmarked.then_some(object);
    }
    let mut ips = current;
    ips.push(own);
    ips.sort_unstable();
    ips.dedup();
    while ips.len() > count.max(1) {
        let at = ips.iter().position(|ip| *ip == own).unwrap_or_default();
        ips.remove((at + 1) % ips.len());
    }
    let kept = subset.get("ports").cloned().unwrap_or_default();
    set_subset(&mut object, ips, kept);
    Some(object)
}

fn without(existing: &Value, own: &str, port: u16) -> Option<Value> {
    let first = existing.get("subsets")?.as_array()?.first()?;
    let list = first.get("addresses").and_then(Value::as_array).unwrap_or_default();
    let ips = list.iter().map(|a| a.str_at(&["ip"])).filter(|ip| *ip != own).collect();
    let mut object = existing.clone();
    set_subset(&mut object, ips, first.get("ports").cloned().unwrap_or_else(|| ports(port)));
    Some(object)
}

/// The slice that says the same as the first subset.
fn slice_of(endpoints: &Value) -> Value {
    let subset = endpoints.get("subsets").and_then(Value::as_array).and_then(|s| s.first());
    let ips: Vec<&str> = subset
        .and_then(|s| s.get("addresses"))
        .and_then(Value::as_array)
        .map(|list| list.iter().map(|a| a.str_at(&["ip"])).collect())
        .unwrap_or_default();
    let v6 = !ips.is_empty() && ips.iter().all(|ip| ip.contains(':'));
    let ready = |ip: &&str| {
        Value::from([
            ("addresses", Value::from(vec![*ip])),
            ("conditions", Value::from([("ready", Value::Bool(true))])),
        ])
    };
    let members: Vec<Value> = ips.iter().filter(|ip| ip.contains(':') == v6).map(ready).collect();
    let metadata = Value::from([
        ("name", Value::from(SERVICE)),
        ("namespace", NAMESPACE.into()),
        ("labels", Value::from([(SERVICE_NAME, SERVICE)])),
    ]);
    Value::from([
        ("metadata", metadata),
        ("addressType", if v6 { "IPv6" } else { "IPv4" }.into()),
        ("endpoints", members.into()),
        ("ports", subset.and_then(|s| s.get("ports")).cloned().unwrap_or_default()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    fn endpoints(ips: &[&str]) -> Value {
        let mut object = start(None).0;
        set_subset(&mut object, ips.to_vec(), ports(6443));
        object
    }

    fn ips(object: &Value) -> Vec<String> {
        only_subset(object).map(|(_, ips)| ips.into_iter().map(str::to_owned).collect()).unwrap_or_default()
    }

    #[test]
    fn those_that_are_alive() {
        let alive = |list: &[&str]| list.iter().map(|ip| (*ip).to_owned()).collect::<Vec<_>>();
        for (existing, wanted, expected) in [
            (None, &["10.1.1.2", "10.1.1.1"][..], Some(&["10.1.1.1", "10.1.1.2"][..])),
            (Some(endpoints(&["10.1.1.1"])), &["10.1.1.1"], None),
            (Some(endpoints(&["10.1.1.1", "10.1.1.9"])), &["10.1.1.1"], Some(&["10.1.1.1"])),
            (Some(endpoints(&["10.1.1.1"])), &[], Some(&[])),
            (Some(json::parse(br#"{"subsets":[{},{}]}"#).unwrap()), &["10.1.1.1"], Some(&["10.1.1.1"])),
        ] {
            let revised = with_addresses(existing.as_ref(), &alive(wanted), 6443, Ports::Keep);
            let expected = expected.map(&alive);
            assert_eq!(revised.as_ref().map(ips), expected, "{wanted:?}");
        }
    }

    #[test]
    fn ports_are_kept_unless_they_are_to_be_set() {
        let existing = endpoints(&["10.1.1.1"]);
        let alive = ["10.1.1.1".to_owned()];
        assert!(with_addresses(Some(&existing), &alive, 443, Ports::Keep).is_none());
        let revised = with_addresses(Some(&existing), &alive, 443, Ports::Set).unwrap();
        assert_eq!(only_subset(&revised).unwrap().0.get("ports"), Some(&ports(443)));
    }

    #[test]
    fn as_many_as_there_should_be() {
        for (existing, count, expected) in [
            (&[][..], 1, &["10.1.1.2"][..]),
            (&["10.1.1.1"], 2, &["10.1.1.1", "10.1.1.2"]),
            (&["10.1.1.1", "10.1.1.3"], 2, &["10.1.1.1", "10.1.1.2"]),
            (&["10.1.1.1"], 1, &["10.1.1.2"]),
        ] {
            let revised = with_own(Some(&endpoints(existing)), "10.1.1.2", count, 6443).unwrap();
            assert_eq!(ips(&revised), expected, "{existing:?}");
        }
        assert!(with_own(Some(&endpoints(&["10.1.1.2", "10.1.1.3"])), "10.1.1.2", 2, 6443).is_none());
    }

    #[test]
    fn a_slice_has_one_family() {
        let slice = slice_of(&endpoints(&["10.1.1.1", "fd00::1"]));
        assert_eq!(slice.str_at(&["addressType"]), "IPv4");
        assert_eq!(slice.get("endpoints").and_then(Value::as_array).map(<[Value]>::len), Some(1));
        assert_eq!(slice_of(&endpoints(&["fd00::1"])).str_at(&["addressType"]), "IPv6");
        assert!(slice_of(&endpoints(&[])).get("endpoints").is_some_and(Value::is_empty));
    }
}
