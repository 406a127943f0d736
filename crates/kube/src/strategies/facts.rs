//! Kinds whose behaviour is a handful of facts.

use crate::defaults::{self, DefaultFn};
use kubelith_meta::Value;
use kubelith_registry::{Call, GarbageCollection, Generation, Strategy};

/// What a kind does in the generic life cycles.
#[derive(Clone, Copy)]
pub struct Facts {
    pub generation: Generation,
    pub creates_on_update: bool,
    pub updates_unconditionally: bool,
    pub delete_returns_object: bool,
    pub garbage_collection: GarbageCollection,
    pub default: DefaultFn,
}

impl Facts {
    const PLAIN: Facts = Facts {
        generation: Generation::None,
        creates_on_update: false,
        updates_unconditionally: true,
        delete_returns_object: false,
        garbage_collection: GarbageCollection::DeleteDependents,
        default: defaults::NOTHING,
    };

    /// Counts changes of spec in metadata.generation.
    const fn generation(mut self, generation: Generation) -> Facts {
        self.generation = generation;
        self
    }

    /// PUT creates.
    const fn upserts(mut self) -> Facts {
        self.creates_on_update = true;
        self
    }

    /// PUT needs a resourceVersion.
    const fn guarded(mut self) -> Facts {
        self.updates_unconditionally = false;
        self
    }

    /// DELETE answers with the object.
    const fn returned(mut self) -> Facts {
        self.delete_returns_object = true;
        self
    }

    const fn collects(mut self, policy: GarbageCollection) -> Facts {
        self.garbage_collection = policy;
        self
    }

    pub fn of(group: &str, plural: &str) -> Facts {
        use Generation::{Own, Spec, SpecAndAnnotations};
        const P: Facts = Facts::PLAIN;
        let facts = match (group, plural) {
            ("", "services" | "persistentvolumes" | "persistentvolumeclaims") if plural != "services" => P.returned(),
            ("", "services") => P.upserts().returned(),
            ("", "endpoints" | "limitranges") => P.upserts(),
            ("" | "events.k8s.io", "events") => P.upserts().collects(GarbageCollection::Unsupported),
            ("", "pods") => P.generation(Own).returned(),
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
            ("resource.k8s.io", "deviceclasses" | "devicetaintrules" | "resourceslices") => {
                P.generation(Spec).returned()
            }
            ("resource.k8s.io", _) => P.returned(),
            ("storage.k8s.io", "storageclasses" | "volumeattributesclasses") => P.returned(),
            ("storage.k8s.io", "csinodes" | "csidrivers" | "volumeattachments") => P.guarded().returned(),
            ("storage.k8s.io", "csistoragecapacities") => P.guarded(),
            ("certificates.k8s.io", "clustertrustbundles" | "podcertificaterequests") => P.guarded(),
            ("internal.apiserver.k8s.io" | "storagemigration.k8s.io", _) => P.guarded(),
            ("apiregistration.k8s.io", "apiservices") => P.guarded(),
            _ => P,
        };
        Facts { default: defaults::of(group, plural), ..facts }
    }
}

impl Strategy for Facts {
    fn default_object(&self, version: &str, object: &mut Value) {
        (self.default)(version, object);
    }

    fn generation(&self) -> Generation {
        self.generation
    }

    fn creates_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn updates_unconditionally(&self) -> bool {
        self.updates_unconditionally
    }

    fn delete_returns_object(&self) -> bool {
        self.delete_returns_object
    }

    fn garbage_collection(&self, _call: &Call) -> GarbageCollection {
        self.garbage_collection
    }
}
