//! Strategies by resource: `<group>/<kind>.rs` for kinds with behaviour, a line here for the others.

mod apiregistration;
mod core;
mod kind;

pub use kind::Kind;

use kubelith_registry::{GarbageCollection, Generation, Strategy};
use std::sync::Arc;

/// The strategy of a built-in resource.
pub fn of(group: &str, plural: &str) -> Arc<dyn Strategy> {
    Arc::new(kind(group, plural).with_defaults_of(group, plural).with_rules_of(group, plural))
}

/// What sets a kind apart.
fn kind(group: &str, plural: &str) -> Kind {
    use Generation::{Own, Spec, SpecAndAnnotations};
    const P: Kind = Kind::PLAIN;
    match (group, plural) {
        ("", "namespaces") => core::namespace::NAMESPACE,
        ("", "persistentvolumes" | "persistentvolumeclaims") => P.returned(),
        ("", "services") => P.upserts().returned(),
        ("", "endpoints" | "limitranges") => P.upserts(),
        ("" | "events.k8s.io", "events") => P.upserts().collects(GarbageCollection::Unsupported),
        ("", "pods") => core::pod::POD,
        ("", "podtemplates") => P.generation(Own).returned(),
        ("", "serviceaccounts" | "resourcequotas") => P.returned(),
        ("", "replicationcontrollers") => P.generation(Spec).collects(GarbageCollection::OrphanDependents),
        ("apps", "deployments") => P.generation(SpecAndAnnotations),
        ("apps", "daemonsets" | "replicasets" | "statefulsets") => P.generation(Spec),
        ("batch", "jobs") => P.generation(Spec).collects(GarbageCollection::OrphanDependents),
        ("batch", "cronjobs") => P.generation(Spec),
        ("coordination.k8s.io", _) => P.upserts().guarded(),
        ("rbac.authorization.k8s.io", _) => P.upserts(),
        ("node.k8s.io", "runtimeclasses") => P.upserts().guarded(),
        ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies") => P.generation(Spec),
        ("policy", "poddisruptionbudgets") => P.generation(Spec).guarded(),
        ("discovery.k8s.io", "endpointslices") => P.generation(Own),
        ("flowcontrol.apiserver.k8s.io", _) => P.generation(Spec),
        ("scheduling.k8s.io", "priorityclasses") => P.generation(Own),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            P.generation(Own).guarded()
        }
        ("admissionregistration.k8s.io", _) => P.generation(Spec).guarded(),
        ("resource.k8s.io", "deviceclasses" | "devicetaintrules" | "resourceslices") => P.generation(Spec).returned(),
        ("resource.k8s.io", _) => P.returned(),
        ("storage.k8s.io", "storageclasses" | "volumeattributesclasses") => P.returned(),
        ("storage.k8s.io", "csinodes" | "csidrivers" | "volumeattachments") => P.guarded().returned(),
        ("storage.k8s.io", "csistoragecapacities") => P.guarded(),
        ("certificates.k8s.io", "clustertrustbundles" | "podcertificaterequests") => P.guarded(),
        ("internal.apiserver.k8s.io" | "storagemigration.k8s.io", _) => P.guarded(),
        ("apiregistration.k8s.io", "apiservices") => apiregistration::API_SERVICE,
        _ => P,
    }
}
