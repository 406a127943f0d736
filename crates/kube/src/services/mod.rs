//! Services get addresses and ports from pools that all servers of a cluster share.
//!
//! An address is taken by creating its IPAddress object: whoever creates it first has it. Node ports are bits of one
//! RangeAllocation in the store, changed by compare-and-put. Both outlive a restart, and both are given back when the
//! write they were taken for does not happen.

mod address_repair;
mod addresses;
mod families;
mod metrics;
mod ports;
mod repair;
mod transaction;

pub use addresses::Addresses;
pub use ports::{NodePorts, PortRange};
pub use repair::hook as repair_hook;

use kubelith_kinds::core::service::prepare;
use kubelith_kinds::core::service::view::{self, list, text, texts};
use kubelith_meta::names::{Cidr, IpRules};
use kubelith_meta::{Status, Value};
use kubelith_observe::metrics::Registry;
use kubelith_registry::{Begun, Call, DeleteBy, DeleteOptions, Objects};
use kubelith_schema::Encoding;
use kubelith_store::cache::Hub;
use metrics::{PoolMetrics, watch_ranges};
use std::sync::Arc;
use transaction::Transaction;

/// Where services may be.
#[derive(Debug, Clone)]
pub struct ServiceNetwork {
    /// `--service-cluster-ip-range`: one or two, of different families. The first is that of services that do not say.
    pub ranges: Vec<Cidr>,
    /// `--service-node-port-range`.
    pub node_ports: PortRange,
    /// How addresses are read.
    pub ip_rules: IpRules,
}

/// As without flags.
impl Default for ServiceNetwork {
    fn default() -> ServiceNetwork {
        let range = Cidr { address: std::net::Ipv4Addr::new(10, 0, 0, 0).into(), prefix: 24 };
        ServiceNetwork {
            ranges: vec![range],
            node_ports: PortRange { base: 30000, size: 2768 },
            ip_rules: IpRules::Strict,
        }
    }
}

/// The allocators of services.
pub struct Services {
    objects: Arc<Objects>,
    addresses: Addresses,
    ports: NodePorts,
    metrics: Arc<PoolMetrics>,
    ip_rules: IpRules,
}

impl Services {
    /// `encoding` is the form in which the taken ports are stored.
    pub fn new(
        network: ServiceNetwork,
        objects: Arc<Objects>,
        hub: Arc<Hub>,
        encoding: Encoding,
        registry: &Registry,
    ) -> Arc<Services> {
        let ServiceNetwork { ranges, node_ports, ip_rules } = network;
        let metrics = Arc::new(PoolMetrics::new(registry));
        let services = Arc::new(Services {
            addresses: Addresses::new(ranges, objects.clone(), metrics.clone()),
            ports: NodePorts::new(node_ports, hub, objects.clone(), encoding, metrics.clone()),
            metrics: metrics.clone(),
            objects,
            ip_rules,
        });
        watch_ranges(registry, &services);
        services
    }

    pub(crate) async fn begin_create(self: &Arc<Self>, call: &Call, service: &mut Value) -> Result<Begun, Status> {
        prepare::normalize_cluster_ips(service, None);
        let mut transaction = Transaction::new(self.clone(), call);
        let allocated = self.allocate_for_create(call, service, &mut transaction).await;
        transaction.begun(allocated).await
    }

    pub(crate) async fn begin_update(
        self: &Arc<Self>,
        call: &Call,
        service: &mut Value,
        old: &Value,
    ) -> Result<Begun, Status> {
        prepare::patch_allocated(service, old);
        prepare::normalize_cluster_ips(service, Some(old));
        let mut transaction = Transaction::new(self.clone(), call);
        let allocated = self.allocate_for_update(call, service, old, &mut transaction).await;
        transaction.begun(allocated).await
    }

    /// Services that were written before they could have two addresses are shown as if they were new.
    pub(crate) fn complete_read(&self, service: &mut Value) {
        prepare::normalize_cluster_ips(service, None);
        families::complete_read(&self.addresses, service);
        prepare::drop_traffic_inside(service);
    }

    /// Gives back what the service had, and removes the Endpoints that go with it.
    pub(crate) async fn after_delete(&self, service: &Value) {
        let meta = service.meta();
        if let Some(endpoints) = self.objects.resource("", "endpoints") {
            let call = self.objects.own_call(&endpoints, meta.namespace(), meta.name());
            match endpoints.delete(&call, &DeleteOptions::default(), DeleteBy::Server).await {
                Err(why) if !why.is_not_found() => {
                    tracing::error!(why = why.message, name = meta.name(), "endpoints of a deleted service");
                }
                _ => {}
            }
        }
        for address in view::addresses(service) {
            self.addresses.release(address).await;
        }
        let mut ports = view::node_ports(service);
        if view::needs_health_check(service) {
            ports.extend(view::port_number(service.at(&["spec", "healthCheckNodePort"])));
        }
        self.ports.release(&ports).await;
    }

    async fn allocate_for_create(
        &self,
        call: &Call,
        service: &mut Value,
        transaction: &mut Transaction,
    ) -> Result<(), Status> {
        families::init(call, &self.addresses, self.ip_rules, service, None)?;
        transaction.allocate_addresses(call, service).await?;
        if view::uses_node_ports(service) {
            transaction.init_node_ports(call, service).await?;
        }
        if view::needs_health_check(service) {
            transaction.allocate_health_check_port(service).await?;
        }
        Ok(())
    }

    async fn allocate_for_update(
        &self,
        call: &Call,
        service: &mut Value,
        old: &Value,
        transaction: &mut Transaction,
    ) -> Result<(), Status> {
        families::init(call, &self.addresses, self.ip_rules, service, Some(old))?;
        self.update_addresses(call, service, old, transaction).await?;
        if view::uses_node_ports(old) && !view::uses_node_ports(service) {
            transaction.release_ports(view::node_ports(old));
        }
        if view::uses_node_ports(service) {
            transaction.update_node_ports(call, service, old).await?;
        }
        match (view::needs_health_check(old), view::needs_health_check(service)) {
            (false, true) => transaction.allocate_health_check_port(service).await?,
            (true, false) => {
                let port = view::port_number(old.at(&["spec", "healthCheckNodePort"]));
                transaction.release_ports(port.into_iter().collect());
            }
            _ => {}
        }
        Ok(())
    }

    async fn update_addresses(
        &self,
        call: &Call,
        service: &mut Value,
        old: &Value,
        transaction: &mut Transaction,
    ) -> Result<(), Status> {
        if families::unchanged_dual_stack(service, old) {
            return Ok(());
        }
        let was_external = text(old, "type") == view::EXTERNAL_NAME;
        let is_external = text(service, "type") == view::EXTERNAL_NAME;
        if was_external && !is_external {
            return transaction.allocate_addresses(call, service).await;
        }
        if texts(old, "clusterIPs").first() == Some(&view::NONE) {
            return Ok(());
        }
        if !was_external && is_external {
            transaction.release_addresses(view::addresses(old));
            return Ok(());
        }
        match (list(old, "ipFamilies").len(), list(service, "ipFamilies").len()) {
            (1, 2) => transaction.allocate_second_address(call, service).await,
            (2, 1) => {
                transaction.release_addresses(view::addresses(old).into_iter().skip(1).collect());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
