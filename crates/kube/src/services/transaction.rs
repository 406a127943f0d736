//! What one write takes and gives back: kept if the object is written, undone if not.

use super::Services;
use super::addresses::AddressError;
use super::families::all_addresses;
use super::ports::PortError;
use futures::future::BoxFuture;
use kubelith_kinds::core::service::view::{
    EXTERNAL_NAME, NONE, allocates_node_ports, node_ports, port_number, text, texts,
};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::parse_ip_sloppy;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::{Begun, Call, Mode, Reservation};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The first port that a dry run shows where one would be allocated.
const SAMPLE_PORT: u16 = 32769;

pub struct Transaction {
    services: Arc<Services>,
    mode: Mode,
    taken: Holdings,
    /// To be given back once the write is done.
    released: Holdings,
}

#[derive(Default)]
struct Holdings {
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
}

impl Transaction {
    pub fn new(services: Arc<Services>, call: &Call) -> Transaction {
        Transaction { services, mode: call.mode, taken: Holdings::default(), released: Holdings::default() }
    }

    /// The reservation, if everything was allocated; else what was is given back.
    pub async fn begun(self, allocated: Result<(), Status>) -> Result<Begun, Status> {
        let reservation: Box<dyn Reservation> = Box::new(self);
        match allocated {
            Ok(()) => Ok(Some(reservation)),
            Err(status) => {
                reservation.revert().await;
                Err(status)
            }
        }
    }

    pub fn release_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.released.addresses.extend(addresses);
    }

    pub fn release_ports(&mut self, ports: Vec<u16>) {
        self.released.ports.extend(ports);
    }

    /// One address for each of the service's families.
    pub async fn allocate_addresses(&mut self, call: &Call, service: &mut Value) -> Result<(), Status> {
        if text(service, "type") == EXTERNAL_NAME || texts(service, "clusterIPs").first() == Some(&NONE) {
            return Ok(());
        }
        let families: Vec<Str> = texts(service, "ipFamilies").into_iter().map(Str::from).collect();
        let mut wanted: Vec<Str> = texts(service, "clusterIPs").into_iter().map(Str::from).collect();
        if wanted.len() < families.len() {
            wanted.resize(families.len(), Str::default());
        }
        // What is to be filled in shows as empty in errors.
        service.set_at(&["spec", "clusterIPs"], wanted.clone().into());
        for (i, family) in families.iter().enumerate() {
            wanted[i] = self.allocate_address(call, service, family, &wanted[i]).await?;
        }
        if let Some(first) = wanted.first() {
            service.set_at(&["spec", "clusterIP"], Value::String(first.clone()));
        }
        service.set_at(&["spec", "clusterIPs"], wanted.into());
        Ok(())
    }

    /// An address of the second family of a service that had one.
    pub async fn allocate_second_address(&mut self, call: &Call, service: &mut Value) -> Result<(), Status> {
        let mut wanted: Vec<Str> = texts(service, "clusterIPs").into_iter().map(Str::from).collect();
        wanted.resize(2, Str::default());
        let family = Str::from(texts(service, "ipFamilies")[1]);
        service.set_at(&["spec", "clusterIPs"], wanted.clone().into());
        wanted[1] = self.allocate_address(call, service, &family, &wanted[1]).await?;
        service.set_at(&["spec", "clusterIPs"], wanted.into());
        Ok(())
    }

    async fn allocate_address(
        &mut self,
        call: &Call,
        service: &Value,
        family: &str,
        wanted: &str,
    ) -> Result<Str, Status> {
        let pool = &self.services.addresses;
        let name = service.meta().name();
        let invalid = |why: String| {
            let mut errors = ErrorList::default();
            errors.push(Error::invalid(&Path::of(&["spec", "clusterIPs"]), all_addresses(service), why));
            Status::invalid(&call.group_kind(), name, &errors)
        };
        if wanted.is_empty() {
            let taken = match self.mode {
                Mode::DryRun => pool.sample(family).ok_or(AddressError::Full),
                Mode::Real => pool.take_any(service, family).await,
            };
            let address = taken.map_err(|why| match why {
                AddressError::Full => {
                    let name = kubelith_meta::text::Quoted(name);
                    Status::internal_error(format!("failed to allocate a serviceIP for Service {name}: {why}"))
                }
                why => invalid(format!("failed to allocate IP: {why}")),
            })?;
            self.took_address(address);
            return Ok(Str::from(address.to_string()));
        }
        let Some(address) = parse_ip_sloppy(wanted) else {
            let shown = kubelith_meta::text::Quoted(wanted);
            return Err(Status::internal_error(format!("failed to parse service IP {shown}")));
        };
        let taken = match self.mode {
            Mode::DryRun => pool.check_dry(address),
            Mode::Real => pool.take(service, address).await,
        };
        taken.map_err(|why| invalid(format!("failed to allocate IP {wanted}: {why}")))?;
        self.took_address(address);
        Ok(wanted.into())
    }

    fn took_address(&mut self, address: IpAddr) {
        self.taken.addresses.push(address);
    }

    async fn take_port(&mut self, port: u16) -> Result<(), PortError> {
        match self.mode {
            Mode::Real => self.services.ports.take(port).await?,
            Mode::DryRun => {
                if self.taken.ports.contains(&port) || self.services.ports.has(port).await? {
                    return Err(PortError::Taken);
                }
            }
        }
        self.taken.ports.push(port);
        Ok(())
    }

    /// `place` says which of the service's ports it is.
    async fn take_any_port(&mut self, service: &Value, place: &str) -> Result<u16, PortError> {
        let meta = service.meta();
        let port = match self.mode {
            Mode::Real => self.services.ports.take_any(&["port", meta.namespace(), meta.name(), place]).await?,
            Mode::DryRun => self.taken.ports.iter().max().map_or(SAMPLE_PORT, |last| last.saturating_add(1)),
        };
        self.taken.ports.push(port);
        Ok(port)
    }

    /// Node ports of a new service. Ports with the same number (of different protocols) share theirs.
    pub async fn init_node_ports(&mut self, call: &Call, service: &mut Value) -> Result<(), Status> {
        let mut by_number: HashMap<i64, u16> = HashMap::new();
        let all = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or(&[]).to_vec();
        for (i, port) in all.iter().enumerate() {
            let given = port_number(port.get("nodePort"));
            if given.is_none() && !allocates_node_ports(service) {
                continue;
            }
            let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
            let node_port = match (by_number.get(&number).copied(), given) {
                (Some(shared), None) => shared,
                (Some(shared), Some(given)) if shared == given => continue,
                (Some(_), Some(given)) => {
                    self.take_port(given).await.map_err(|why| port_taken(call, service, i, given, why))?;
                    continue;
                }
                (None, _) => {
                    let same = all.iter().filter(|p| p.get("port").and_then(Value::as_i64) == Some(number));
                    let asked = same.filter_map(|p| port_number(p.get("nodePort"))).next();
                    let port = match asked {
                        Some(asked) => {
                            self.take_port(asked).await.map_err(|why| port_taken(call, service, i, asked, why))?;
                            asked
                        }
                        None => self.take_any_port(service, &i.to_string()).await.map_err(no_port)?,
                    };
                    by_number.insert(number, port);
                    port
                }
            };
            set_node_port(service, i, node_port);
        }
        Ok(())
    }

    /// Node ports of a changed service: new ones are taken, those that it does not have any more go.
    pub async fn update_node_ports(&mut self, call: &Call, service: &mut Value, old: &Value) -> Result<(), Status> {
        let had = node_ports(old);
        let mut taken: HashSet<u16> = HashSet::new();
        let count = service.at(&["spec", "ports"]).and_then(Value::as_array).map_or(0, <[_]>::len);
        let mut seen: HashSet<(Str, u16)> = HashSet::new();
        for i in 0..count {
            let port = service.at(&["spec", "ports"]).and_then(Value::as_array).map(|ports| &ports[i]);
            let protocol = Str::from(port.map_or("", |port| port.str_at(&["protocol"])));
            let number = match port_number(port.and_then(|p| p.get("nodePort"))) {
                Some(given) => {
                    if !had.contains(&given) && taken.insert(given) {
                        self.take_port(given).await.map_err(|why| port_taken(call, service, i, given, why))?;
                    }
                    given
                }
                None if allocates_node_ports(service) => {
                    let port = self.take_any_port(service, &i.to_string()).await.map_err(no_port)?;
                    set_node_port(service, i, port);
                    port
                }
                None => continue,
            };
            if !seen.insert((protocol.clone(), number)) {
                return Err(Status::unknown(format!("duplicate nodePort: {{{protocol} {number}}}")));
            }
        }
        let kept = node_ports(service);
        self.release_ports(had.into_iter().filter(|port| !kept.contains(port)).collect());
        Ok(())
    }

    pub async fn allocate_health_check_port(&mut self, service: &mut Value) -> Result<(), Status> {
        const PATH: [&str; 2] = ["spec", "healthCheckNodePort"];
        if let Some(given) = port_number(service.at(&PATH)) {
            return self.take_port(given).await.map_err(|why| {
                Status::internal_error(format!("failed to allocate requested HealthCheck NodePort {given}: {why}"))
            });
        }
        let port = self.take_any_port(service, "health check").await;
        let port =
            port.map_err(|why| Status::internal_error(format!("failed to allocate a HealthCheck NodePort 0: {why}")))?;
        service.set_at(&PATH, i64::from(port).into());
        Ok(())
    }
}

impl Reservation for Transaction {
    fn commit(self: Box<Self>) -> BoxFuture<'static, ()> {
        let Transaction { services, mode, released, .. } = *self;
        Box::pin(give_back(services, mode, released))
    }

    fn revert(self: Box<Self>) -> BoxFuture<'static, ()> {
        let Transaction { services, mode, taken, .. } = *self;
        Box::pin(give_back(services, mode, taken))
    }
}

async fn give_back(services: Arc<Services>, mode: Mode, holdings: Holdings) {
    if mode == Mode::DryRun {
        return;
    }
    for address in holdings.addresses {
        services.addresses.release(address).await;
    }
    services.ports.release(&holdings.ports).await;
}

fn set_node_port(service: &mut Value, index: usize, node_port: u16) {
    let ports = service.at_mut(&["spec", "ports"]).and_then(Value::as_array_mut);
    if let Some(port) = ports.and_then(|ports| ports.get_mut(index)) {
        port.set_at(&["nodePort"], i64::from(node_port).into());
    }
}

fn port_taken(call: &Call, service: &Value, index: usize, port: u16, why: PortError) -> Status {
    let path = Path::of(&["spec", "ports"]);
    let path = path.index(index);
    let mut errors = ErrorList::default();
    errors.push(Error::invalid(&path.child("nodePort"), i64::from(port), why.to_string()));
    Status::invalid(&call.group_kind(), service.meta().name(), &errors)
}

fn no_port(why: PortError) -> Status {
    Status::internal_error(format!("failed to allocate a nodePort: {why}"))
}
