//! From a service to an address that can be dialled.

use crate::api_service::{ServiceReference, value_of};
use http::uri::Authority;
use kubelith_meta::{Str, Value};
use kubelith_server::readings::Readings;
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The label by which a slice belongs to a service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// How requests reach a service's pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// By its cluster address: something on the network spreads them.
    ClusterIp,
    /// Straight to one of its endpoints (`--enable-aggregator-routing`).
    Endpoints,
}

/// Why a service has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("service {0:?} not found")]
    NotFound(Str),
    #[error("unsupported service type {0:?}")]
    UnsupportedType(Str),
    #[error("cannot route to service with ClusterIP \"None\"")]
    Headless,
    #[error("no service port {port} found for service {service:?}")]
    NoPort { port: u16, service: Str },
    #[error("no endpoints available for service {0:?}")]
    NoEndpoints(Str),
    #[error("{0:?} is no address")]
    BadAddress(String),
}

/// What of a Service matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub kind: Str,
    pub cluster_ip: Str,
    pub external_name: Str,
    /// Name and number.
    pub ports: Vec<(Str, u16)>,
    /// The family to prefer: `IPv4` or `IPv6`.
    pub family: Str,
}

/// What of an EndpointSlice matters here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slice {
    pub address_type: Str,
    /// First addresses of ready endpoints.
    pub ready: Vec<Str>,
    pub has_ready: bool,
    /// Names and numbers of ports that have both.
    pub ports: Vec<(Str, u16)>,
}

impl Service {
    fn read(object: &Value) -> Service {
        let text = |path: &[&str]| Str::from(object.str_at(path));
        let ports = object.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or(&[]);
        let families = object.at(&["spec", "ipFamilies"]).and_then(Value::as_array).unwrap_or(&[]);
        Service {
            kind: text(&["spec", "type"]),
            cluster_ip: text(&["spec", "clusterIP"]),
            external_name: text(&["spec", "externalName"]),
            ports: ports.iter().filter_map(|p| Some((p.str_at(&["name"]).into(), number(p)?))).collect(),
            family: families.first().and_then(Value::as_str).unwrap_or("").into(),
        }
    }

    fn port(&self, number: u16) -> Option<&(Str, u16)> {
        self.ports.iter().find(|(_, n)| *n == number)
    }
}

impl Slice {
    fn read(object: &Value) -> Slice {
        let list = |key: &str| object.get(key).and_then(Value::as_array).unwrap_or(&[]);
        let is_ready = |e: &&Value| e.at(&["conditions", "ready"]).and_then(Value::as_bool).unwrap_or(true);
        let first = |e: &Value| {
            let addresses = e.get("addresses")?.as_array()?;
            addresses.first()?.as_str().map(Str::from)
        };
        let named = |p: &Value| Some((p.get("name")?.as_str()?.into(), number(p)?));
        Slice {
            address_type: object.str_at(&["addressType"]).into(),
            ready: list("endpoints").iter().filter(is_ready).filter_map(first).collect(),
            has_ready: list("endpoints").iter().any(|e| is_ready(&e)),
            ports: list("ports").iter().filter_map(named).collect(),
        }
    }

    fn port(&self, name: &str) -> Option<u16> {
        self.ports.iter().find(|(n, _)| n == name).map(|(_, number)| *number)
    }
}

fn number(port: &Value) -> Option<u16> {
    port.get("port").and_then(Value::as_i64).and_then(|p| u16::try_from(p).ok())
}

/// Services and their slices, read when asked for and kept until they change.
pub struct Resolver {
    routing: Routing,
    services: Arc<ResourceCache>,
    read: Readings<Service>,
    /// Slices by the service that they belong to, then by their key.
    slices: Mutex<HashMap<ServiceKey, SlicesByKey>>,
    /// Endpoints take turns.
    turn: AtomicUsize,
}

/// `namespace/name`.
type ServiceKey = Str;
type SlicesByKey = BTreeMap<Arc<str>, Arc<LazySlice>>;

/// A slice, parsed when its service is first resolved: most are never asked for.
struct LazySlice {
    object: Arc<CachedObject>,
    read: OnceLock<Slice>,
}

impl LazySlice {
    fn get(&self) -> &Slice {
        self.read.get_or_init(|| value_of(&self.object).map(|v| Slice::read(&v)).unwrap_or_default())
    }
}

fn key(namespace: &str, name: &str) -> ServiceKey {
    format!("{namespace}/{name}").into()
}

/// The service that a slice belongs to.
pub fn service_of(slice: &CachedObject) -> Option<Str> {
    let (_, name) = slice.labels.iter().find(|(k, _)| k == SERVICE_NAME)?;
    (!name.is_empty()).then(|| key(slice.namespace(), name))
}

impl Resolver {
    pub fn new(routing: Routing, services: Arc<ResourceCache>) -> Resolver {
        Resolver { routing, services, read: Readings::default(), slices: Mutex::default(), turn: AtomicUsize::new(0) }
    }

    /// Takes note of a change of a slice.
    pub fn slice_changed(&self, old: Option<&Arc<CachedObject>>, new: Option<&Arc<CachedObject>>) {
        let mut slices = self.slices.lock().expect("no panic under this lock");
        if let Some((old, service)) = old.and_then(|o| Some((o, service_of(o)?)))
            && let Some(of_service) = slices.get_mut(&service)
        {
            of_service.remove(&old.key);
            if of_service.is_empty() {
                slices.remove(&service);
            }
        }
        if let Some((new, service)) = new.and_then(|n| Some((n, service_of(n)?))) {
            let lazy = LazySlice { object: new.clone(), read: OnceLock::new() };
            slices.entry(service).or_default().insert(new.key.clone(), Arc::new(lazy));
        }
    }

    pub fn service(&self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        let key = key(namespace, name);
        self.read.get(&self.services, &key, |object| Some(Service::read(&value_of(object)?)))
    }

    fn slices(&self, namespace: &str, name: &str) -> Vec<Arc<LazySlice>> {
        let slices = self.slices.lock().expect("no panic under this lock");
        slices.get(&key(namespace, name)).map(|s| s.values().cloned().collect()).unwrap_or_default()
    }

    /// Whether a service has slices, and whether one of them has a ready endpoint and the port of this name.
    pub fn endpoints(&self, namespace: &str, name: &str, port_name: &str) -> Endpoints {
        let slices = self.slices(namespace, name);
        match slices.iter().any(|s| s.get().has_ready && s.get().port(port_name).is_some()) {
            true => Endpoints::Ready,
            false if slices.is_empty() => Endpoints::None,
            false => Endpoints::NotReady,
        }
    }

    /// Where to send a request for a service: another answer each time if there are several endpoints.
    pub fn resolve(&self, to: &ServiceReference) -> Result<Authority, Unresolved> {
        let service = self.service(&to.namespace, &to.name).ok_or_else(|| Unresolved::NotFound(to.name.clone()))?;
        let no_port = || Unresolved::NoPort { port: to.port, service: to.name.clone() };
        match (self.routing, service.kind.as_str()) {
            (Routing::ClusterIp, "ExternalName") => authority(&service.external_name, to.port),
            (Routing::ClusterIp, "ClusterIP") if service.cluster_ip == "None" => Err(Unresolved::Headless),
            (Routing::ClusterIp, "ClusterIP" | "LoadBalancer" | "NodePort") => {
                let (_, port) = service.port(to.port).ok_or_else(no_port)?;
                authority(&service.cluster_ip, *port)
            }
            (Routing::Endpoints, "ClusterIP" | "LoadBalancer" | "NodePort") => {
                let (name, _) = service.port(to.port).ok_or_else(no_port)?;
                self.endpoint(to, &service, name)
            }
            _ => Err(Unresolved::UnsupportedType(service.kind.clone())),
        }
    }

    /// A ready endpoint: of the service's own address family if it has one, any of them else.
    fn endpoint(&self, to: &ServiceReference, service: &Service, port: &str) -> Result<Authority, Unresolved> {
        let slices = self.slices(&to.namespace, &to.name);
        let usable = |preferred: bool| -> Vec<(&Str, u16)> {
            slices
                .iter()
                .map(|s| s.get())
                .filter(|s| (service.family.is_empty() || s.address_type == service.family) == preferred)
                .filter_map(|s| Some((s, s.port(port)?)))
                .flat_map(|(s, port)| s.ready.iter().map(move |address| (address, port)))
                .collect()
        };
        let mut found = usable(true);
        if found.is_empty() {
            found = usable(false);
        }
        if found.is_empty() {
            return Err(Unresolved::NoEndpoints(to.name.clone()));
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (address, port) = found[turn % found.len()];
        authority(address, port)
    }
}

/// What there is behind a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoints {
    /// No slice at all.
    None,
    /// Slices, but no ready endpoint with the port.
    NotReady,
    Ready,
}

fn authority(host: &str, port: u16) -> Result<Authority, Unresolved> {
    let text = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Authority::from_maybe_shared(text.clone().into_bytes()).map_err(|_| Unresolved::BadAddress(text))
}
