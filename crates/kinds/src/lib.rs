//! The built-in kinds: what each does beyond what the catalogue says. `<group>/<kind>/mod.rs` has one constant that names all of it,
//! in the order in which it holds; only what is longer has a file of its own beside it (`validate`, `prepare`, `defaults`, `warnings`,
//! `cells`). Pods are a crate of their own, for many kinds have templates of them. A resource that is not in [`KINDS`] has no behaviour of
//! its own.
//!
//! Nothing here has effects: addresses and ports of services, bindings of pods and the like are in the crate `kube`.

pub mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
pub mod core;
mod defaults;
mod discovery;
mod flowcontrol;
#[cfg(test)]
mod gated_tests;
mod internal;
mod networking;
mod node;
mod policy;
mod rbac;
pub mod resource;
mod scheduling;
mod storage;
mod storagemigration;
#[cfg(test)]
mod tests;
mod workload;

pub use apiregistration::api_service::API_SERVICE;
pub use defaults::{DefaultFn, Defaults};
pub use flowcontrol::flow_schema::flow_schema_order;

use kubelith_rules::Kind;
use kubelith_rules::cells::{CellFn, generic};

/// All kinds with behaviour of their own.
pub const KINDS: [&Kind; 69] = [
    &core::component_status::COMPONENT_STATUS,
    &core::config_map::CONFIG_MAP,
    &core::endpoints::ENDPOINTS,
    &core::event::EVENT,
    &core::event::EVENT_OF_EVENTS,
    &core::limit_range::LIMIT_RANGE,
    &core::namespace::NAMESPACE,
    &core::node::NODE,
    &core::persistent_volume::PERSISTENT_VOLUME,
    &core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIM,
    &kubelith_pods::POD,
    &core::pod_template::POD_TEMPLATE,
    &core::replication_controller::REPLICATION_CONTROLLER,
    &core::resource_quota::RESOURCE_QUOTA,
    &core::secret::SECRET,
    &core::service::SERVICE,
    &core::service_account::SERVICE_ACCOUNT,
    &admissionregistration::binding::MUTATING_BINDING,
    &admissionregistration::binding::VALIDATING_BINDING,
    &admissionregistration::policy::MUTATING_POLICY,
    &admissionregistration::policy::VALIDATING_POLICY,
    &admissionregistration::webhook::MUTATING_WEBHOOK,
    &admissionregistration::webhook::VALIDATING_WEBHOOK,
    &apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITION,
    &apiregistration::api_service::API_SERVICE,
    &apps::controller_revision::CONTROLLER_REVISION,
    &apps::daemon_set::DAEMON_SET,
    &apps::deployment::DEPLOYMENT,
    &apps::replica_set::REPLICA_SET,
    &apps::stateful_set::STATEFUL_SET,
    &autoscaling::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALER,
    &batch::cron_job::CRON_JOB,
    &batch::job::JOB,
    &certificates::certificate_signing_request::SIGNING_REQUEST,
    &certificates::cluster_trust_bundle::CLUSTER_TRUST_BUNDLE,
    &certificates::pod_certificate_request::POD_CERTIFICATE_REQUEST,
    &coordination::lease::LEASE,
    &coordination::lease_candidate::LEASE_CANDIDATE,
    &discovery::endpoint_slice::ENDPOINT_SLICE,
    &flowcontrol::flow_schema::FLOW_SCHEMA,
    &flowcontrol::priority_level_configuration::PRIORITY_LEVEL,
    &internal::storage_version::STORAGE_VERSION,
    &networking::ingress::INGRESS,
    &networking::ingress_class::INGRESS_CLASS,
    &networking::ip_address::IP_ADDRESS,
    &networking::network_policy::NETWORK_POLICY,
    &networking::service_cidr::SERVICE_CIDR,
    &node::runtime_class::RUNTIME_CLASS,
    &policy::pod_disruption_budget::POD_DISRUPTION_BUDGET,
    &rbac::cluster_role::CLUSTER_ROLE,
    &rbac::cluster_role_binding::CLUSTER_ROLE_BINDING,
    &rbac::role::ROLE,
    &rbac::role_binding::ROLE_BINDING,
    &resource::device_class::DEVICE_CLASS,
    &resource::device_taint_rule::DEVICE_TAINT_RULE,
    &resource::resource_claim::RESOURCE_CLAIM,
    &resource::resource_claim_template::RESOURCE_CLAIM_TEMPLATE,
    &resource::resource_pool_status_request::RESOURCE_POOL_STATUS_REQUEST,
    &resource::resource_slice::RESOURCE_SLICE,
    &scheduling::pod_group::POD_GROUP,
    &scheduling::priority_class::PRIORITY_CLASS,
    &scheduling::workload::WORKLOAD,
    &storage::csi_driver::CSI_DRIVER,
    &storage::csi_node::CSI_NODE,
    &storage::csi_storage_capacity::CSI_STORAGE_CAPACITY,
    &storage::storage_class::STORAGE_CLASS,
    &storage::volume_attachment::VOLUME_ATTACHMENT,
    &storage::volume_attributes_class::VOLUME_ATTRIBUTES_CLASS,
    &storagemigration::storage_version_migration::STORAGE_VERSION_MIGRATION,
];

/// Kinds that a server knows.
pub type Kinds = &'static [&'static Kind];

/// The built-in ones.
pub static BUILTIN: Kinds = &KINDS;

/// What sets a resource apart, before gates change it (`Kind::under`).
pub fn kind(kinds: Kinds, group: &str, plural: &str) -> Kind {
    let known = kinds.iter().find(|kind| kind.group == group && kind.plural == plural);
    known.map_or(Kind::PLAIN, |kind| **kind)
}

/// The functions of cells, by name.
pub fn cells(kinds: Kinds) -> impl Iterator<Item = (&'static str, CellFn)> {
    kinds.iter().flat_map(|kind| kind.cells).chain(generic::CELLS).copied()
}
