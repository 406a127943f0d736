//! The built-in plugins, by name.

mod always;
mod always_pull_images;
mod amounts;
mod anti_affinity;
mod certificate_subject;
mod certificates;
mod claim_resize;
mod default_class;
mod default_toleration_seconds;
mod deny_external_ips;
mod event_rate_limit;
mod image_policy;
mod limit_ranger;
mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;
mod node_restriction;
mod owner_references;
mod pod_groups;
mod pod_node_selector;
mod pod_resize;
mod pod_security;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_protection;
mod taint_nodes;
mod tolerations;
mod topology_labels;

pub use always::{AlwaysAdmit, AlwaysDeny};
pub use always_pull_images::AlwaysPullImages;
pub use anti_affinity::LimitPodHardAntiAffinityTopology;
pub use certificate_subject::CertificateSubjectRestriction;
pub use certificates::{CertificateApproval, CertificateSigning, ClusterTrustBundleAttest, Signers};
pub use claim_resize::PersistentVolumeClaimResize;
pub use default_class::{DefaultIngressClass, DefaultStorageClass};
pub use default_toleration_seconds::DefaultTolerationSeconds;
pub use deny_external_ips::DenyServiceExternalIPs;
pub use event_rate_limit::EventRateLimit;
pub use image_policy::ImagePolicyWebhook;
pub use limit_ranger::LimitRanger;
pub use namespace_auto_provision::NamespaceAutoProvision;
pub use namespace_exists::NamespaceExists;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use node_restriction::{Gates as NodeGates, NodeRestriction};
pub use owner_references::OwnerReferencesPermissionEnforcement;
pub use pod_groups::{JobValidation, PodGroupProtection, PodGroupWorkloadExists};
pub use pod_node_selector::PodNodeSelector;
pub use pod_resize::{NodeDeclaredFeatureValidator, PodResizeValidator};
pub use pod_security::PodSecurity;
pub use priority::Priority;
pub use resource_quota::{Parts as QuotaParts, QuotaUsage, ResourceQuota};
pub use runtime_class::RuntimeClass;
pub use service_account::ServiceAccount;
pub use storage_protection::StorageObjectInUseProtection;
pub use taint_nodes::TaintNodesByCondition;
pub use tolerations::{ExtendedResourceToleration, PodTolerationRestriction};
pub use topology_labels::PodTopologyLabels;

use kubelith_meta::Value;
use kubelith_registry::Call;

/// The list at `path` of an object, made if there is none.
fn list_mut<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Vec<Value> {
    let list = path.iter().fold(object, |place, name| place.make_object().entry_or_null(name));
    if list.as_array().is_none() {
        *list = Value::Array(Vec::new());
    }
    list.as_array_mut().expect("just made")
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or(&[])
}

/// The class of storage that a claim asks for; empty if it names none.
fn storage_class(claim: &Value) -> &str {
    let annotated = claim.meta().annotation("volume.beta.kubernetes.io/storage-class");
    annotated.unwrap_or_else(|| claim.str_at(&["spec", "storageClassName"]))
}

/// Whether a call is about a namespace itself, not about what is in one.
fn is_of_namespace(call: &Call) -> bool {
    call.kind.group.is_empty() && call.kind.kind == "Namespace"
}
