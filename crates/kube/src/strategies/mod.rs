//! Strategies by resource: `<group>/<kind>.rs` for kinds with behaviour, a line here for the others.

mod apiregistration;
mod apps;
mod batch;
mod certificates;
mod core;
mod devices;
mod kind;
mod other;
mod pod_warnings;

pub use kind::{Bound, Kind};

use crate::defaults::Defaults;
use crate::gated::{Gated, Gates};
use crate::services::Services;
use kubelith_features::FeatureGates;
use kubelith_registry::{GarbageCollection, Generation, Objects, Strategy};
use kubelith_validation::Env;
use std::sync::Arc;

/// What strategies take from the server.
pub struct Host<'a> {
    pub env: Arc<Env>,
    pub defaults: &'a Defaults,
    pub gates: Gates<'a>,
}

impl Host<'_> {
    /// The strategy of a built-in resource.
    pub fn strategy(&self, group: &str, plural: &str) -> Arc<dyn Strategy> {
        Arc::new(self.bind(group, plural))
    }

    /// The strategy of claims on devices and their templates, which ask their namespaces.
    pub fn strategy_of_claims(&self, plural: &str, objects: &Arc<Objects>) -> Arc<dyn Strategy> {
        Arc::new(Bound { namespaces: Some(objects.clone()), ..self.bind("resource.k8s.io", plural) })
    }

    /// The strategy of services, which get their addresses and ports from these pools.
    pub fn strategy_of_services(&self, services: &Arc<Services>) -> Arc<dyn Strategy> {
        Arc::new(Bound { services: Some(services.clone()), ..self.bind("", "services") })
    }

    fn bind(&self, group: &str, plural: &str) -> Bound {
        let mut kind = kind(group, plural, self.gates).with_rules_of(group, plural);
        if group == "admissionregistration.k8s.io" && (self.gates)("ManifestBasedAdmissionControlConfig") {
            kind = other::without_static(kind);
        }
        Bound {
            kind,
            default: self.defaults.of(group, plural),
            env: self.env.clone(),
            gated: Gated::of(group, plural, self.gates),
            services: None,
            namespaces: None,
        }
    }
}

/// The strategy of a built-in resource with all features as they are by default.
pub fn of(group: &str, plural: &str) -> Arc<dyn Strategy> {
    let features = FeatureGates::default();
    let gates = |gate: &str| features.enabled(gate);
    let defaults = Defaults::new(kubelith_catalog::builtin(), &gates);
    Host { env: Arc::new(Env::default()), defaults: &defaults, gates: &gates }.strategy(group, plural)
}

/// The gates that choose between kinds of behaviour.
pub const GATES: [&str; 2] = ["ManifestBasedAdmissionControlConfig", "ServiceCIDRStatusFieldWiping"];

/// What sets a kind apart.
fn kind(group: &str, plural: &str, gates: Gates<'_>) -> Kind {
    use Generation::{ExactMember, Spec};
    use core::{namespace, objects, pod, storage};
    const P: Kind = Kind::PLAIN;
    match (group, plural) {
        ("", "namespaces") => namespace::NAMESPACE,
        ("", "persistentvolumes") => storage::PERSISTENT_VOLUME,
        ("", "persistentvolumeclaims") => storage::PERSISTENT_VOLUME_CLAIM,
        ("", "services") => crate::services::SERVICE,
        ("", "endpoints") => objects::ENDPOINTS,
        ("", "limitranges") => objects::LIMIT_RANGE,
        ("" | "events.k8s.io", "events") => P.upserts().collects(GarbageCollection::Unsupported),
        ("", "nodes") => objects::NODE,
        ("", "pods") => pod::POD,
        ("", "podtemplates") => objects::POD_TEMPLATE,
        ("", "serviceaccounts") => objects::SERVICE_ACCOUNT,
        ("", "secrets") => objects::SECRET,
        ("", "resourcequotas") => objects::RESOURCE_QUOTA,
        ("", "replicationcontrollers") => objects::REPLICATION_CONTROLLER,
        ("apps", "deployments") => apps::DEPLOYMENT,
        ("apps", "daemonsets") => apps::DAEMON_SET,
        ("apps", "replicasets") => apps::REPLICA_SET,
        ("apps", "statefulsets") => apps::STATEFUL_SET,
        ("batch", "jobs") => batch::JOB,
        ("batch", "cronjobs") => batch::CRON_JOB,
        ("certificates.k8s.io", "certificatesigningrequests") => certificates::signing_request::SIGNING_REQUEST,
        ("certificates.k8s.io", "podcertificaterequests") => other::POD_CERTIFICATE_REQUEST,
        ("certificates.k8s.io", "clustertrustbundles") => P.guarded(),
        ("coordination.k8s.io", _) => P.upserts().guarded(),
        ("rbac.authorization.k8s.io", _) => P.upserts(),
        ("node.k8s.io", "runtimeclasses") => other::RUNTIME_CLASS,
        ("networking.k8s.io", "ingresses") => other::INGRESS,
        ("networking.k8s.io", "ingressclasses") => P.generation(Spec),
        ("networking.k8s.io", "networkpolicies") => P.generation(ExactMember("spec")),
        ("networking.k8s.io", "servicecidrs") if gates("ServiceCIDRStatusFieldWiping") => other::sealed(P),
        ("networking.k8s.io", "servicecidrs") => other::SERVICE_CIDR,
        ("policy", "poddisruptionbudgets") => P.generation(Spec).guarded(),
        ("discovery.k8s.io", "endpointslices") => other::ENDPOINT_SLICE,
        ("flowcontrol.apiserver.k8s.io", _) => other::status_only(P.generation(Spec)),
        ("scheduling.k8s.io", "priorityclasses") => other::PRIORITY_CLASS,
        ("scheduling.k8s.io", "podgroups") => other::sealed(P),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            other::unlike_static(P.generation(ExactMember("webhooks")).guarded())
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            other::unlike_static(other::sealed(P.generation(Spec).guarded()))
        }
        ("admissionregistration.k8s.io", _) => other::unlike_static(P.generation(Spec).guarded()),
        ("resource.k8s.io", "devicetaintrules") => other::sealed(P.generation(Spec).returned()),
        ("resource.k8s.io", "deviceclasses") => P.generation(Spec).returned(),
        ("resource.k8s.io", "resourceslices") => other::RESOURCE_SLICE,
        ("resource.k8s.io", "resourceclaims") => devices::CLAIM,
        ("resource.k8s.io", "resourcepoolstatusrequests") => other::sealed(P.guarded().returned()),
        ("resource.k8s.io", _) => P.returned(),
        ("storage.k8s.io", "storageclasses") => other::STORAGE_CLASS,
        ("storage.k8s.io", "volumeattributesclasses") => P.returned(),
        ("storage.k8s.io", "csidrivers") => other::CSI_DRIVER,
        ("storage.k8s.io", "csinodes") => P.guarded().returned(),
        ("storage.k8s.io", "volumeattachments") => other::sealed(P.guarded().returned()),
        ("storage.k8s.io", "csistoragecapacities") => other::CSI_STORAGE_CAPACITY,
        ("internal.apiserver.k8s.io" | "storagemigration.k8s.io", _) => other::sealed(P.guarded()),
        ("apiregistration.k8s.io", "apiservices") => apiregistration::API_SERVICE,
        _ => P,
    }
}
