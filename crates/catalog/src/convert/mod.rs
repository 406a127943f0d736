//! Conversion of objects between the versions of their kind.
//!
//! Each kind has a hub: the shape that its preferred versions share. A version of another shape is a spoke, with
//! a function to the hub and one from it. Versions that share a shape only differ in `apiVersion`. What comes out
//! is canonical for its own type, so fields that one version prints and another leaves out need no care.

mod annotations;
mod custom_resource_definition;
mod devices;
mod disruption_budget;
mod event;
mod horizontal_pod_autoscaler;
mod metrics;
mod normal;
mod removed;
#[cfg(test)]
mod tests;
mod values;

pub use custom_resource_definition::from_v1 as definition_from_v1;
pub use event::stored_label;
pub use normal::normalize;

use crate::catalog::{Catalog, builtin};
use kubelith_meta::{GroupVersionKind, Value};
use kubelith_schema::{Empties, canonicalize};
use std::fmt;

/// The two kinds have nothing to do with each other, or one of them is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertError(Box<(GroupVersionKind, GroupVersionKind)>);

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be converted to {}", self.0.0, self.0.1)
    }
}

impl std::error::Error for ConvertError {}

/// A version whose shape is not the hub's.
struct Spoke {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    to_hub: fn(&mut Value),
    from_hub: fn(&mut Value),
}

const fn spoke(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    to_hub: fn(&mut Value),
    from_hub: fn(&mut Value),
) -> Spoke {
    Spoke { group, version, kind, to_hub, from_hub }
}

use horizontal_pod_autoscaler as hpa;

/// The hubs are autoscaling/v2, the core Event, and v1 of all others.
static SPOKES: &[Spoke] = &[
    spoke("autoscaling", "v1", "HorizontalPodAutoscaler", hpa::to_v2, hpa::from_v2),
    spoke("events.k8s.io", "v1", "Event", event::to_core, event::from_core),
    spoke("events.k8s.io", "v1beta1", "Event", event::to_core, event::from_core),
    spoke("resource.k8s.io", "v1beta1", "ResourceClaim", devices::claim_to_v1, devices::claim_from_v1),
    spoke("resource.k8s.io", "v1beta1", "ResourceClaimTemplate", devices::template_to_v1, devices::template_from_v1),
    spoke("resource.k8s.io", "v1beta1", "ResourceSlice", devices::slice_to_v1, devices::slice_from_v1),
    spoke(
        "apiextensions.k8s.io",
        "v1beta1",
        "CustomResourceDefinition",
        custom_resource_definition::to_v1,
        custom_resource_definition::from_v1,
    ),
    spoke("apps", "v1beta1", "Deployment", removed::rollback_to_annotation, removed::rollback_from_annotation),
    spoke("extensions", "v1beta1", "Deployment", removed::rollback_to_annotation, removed::rollback_from_annotation),
    spoke("extensions", "v1beta1", "Ingress", removed::ingress_to_v1, removed::ingress_from_v1),
    spoke("authorization.k8s.io", "v1beta1", "SubjectAccessReview", removed::group_to_groups, removed::groups_to_group),
    spoke(
        "authorization.k8s.io",
        "v1beta1",
        "LocalSubjectAccessReview",
        removed::group_to_groups,
        removed::groups_to_group,
    ),
    spoke("discovery.k8s.io", "v1beta1", "EndpointSlice", removed::topology_to_zone, removed::zone_to_topology),
    spoke(
        "flowcontrol.apiserver.k8s.io",
        "v1beta1",
        "PriorityLevelConfiguration",
        removed::assured_to_nominal,
        removed::nominal_to_assured,
    ),
    spoke(
        "flowcontrol.apiserver.k8s.io",
        "v1beta2",
        "PriorityLevelConfiguration",
        removed::assured_to_nominal,
        removed::nominal_to_assured,
    ),
    spoke(
        "flowcontrol.apiserver.k8s.io",
        "v1beta3",
        "PriorityLevelConfiguration",
        removed::zero_shares_from_annotation,
        removed::zero_shares_to_annotation,
    ),
    spoke("policy", "v1beta1", "PodDisruptionBudget", disruption_budget::to_v1, disruption_budget::from_v1),
    spoke("networking.k8s.io", "v1beta1", "Ingress", removed::ingress_to_v1, removed::ingress_from_v1),
    spoke("node.k8s.io", "v1alpha1", "RuntimeClass", removed::runtime_class_to_v1, removed::runtime_class_from_v1),
    spoke("rbac.authorization.k8s.io", "v1alpha1", "RoleBinding", removed::subjects_to_v1, removed::subjects_from_v1),
    spoke(
        "rbac.authorization.k8s.io",
        "v1alpha1",
        "ClusterRoleBinding",
        removed::subjects_to_v1,
        removed::subjects_from_v1,
    ),
];

/// Converts an object, or a list of objects, from one version of its kind to another.
pub fn convert(mut value: Value, from: &GroupVersionKind, to: &GroupVersionKind) -> Result<Value, ConvertError> {
    if from == to {
        return Ok(value);
    }
    let catalog = builtin();
    let error = || ConvertError(Box::new((from.clone(), to.clone())));
    let schema = catalog.kind_schema(to).ok_or_else(error)?;
    if !is_same_kind(catalog, from, to) {
        return Err(error());
    }
    if let Some(items) = items_of(catalog, from, &mut value) {
        let kind = |list: &GroupVersionKind| GroupVersionKind { kind: item_kind(&list.kind).into(), ..list.clone() };
        let (from, to) = (kind(from), kind(to));
        items.iter_mut().for_each(|item| reshape(item, &from, &to));
    } else {
        reshape(&mut value, from, to);
    }
    value.make_object().insert("apiVersion", to.api_version());
    canonicalize(&schema.table, &schema.root, &mut value, Empties::Distinct);
    Ok(value)
}

/// Whether `from` and `to` are versions of one kind.
pub fn is_same_kind(catalog: &Catalog, from: &GroupVersionKind, to: &GroupVersionKind) -> bool {
    let known = catalog.kind_type(from).is_some() && catalog.kind_type(to).is_some();
    known && from.kind == to.kind && home(from) == home(to)
}

/// The group that a kind belongs to: some kinds are or were in several.
fn home(gvk: &GroupVersionKind) -> &str {
    match (gvk.group.as_str(), item_kind(&gvk.kind)) {
        ("events.k8s.io", "Event") => "",
        ("extensions", "DaemonSet" | "Deployment" | "DeploymentRollback" | "ReplicaSet") => "apps",
        ("extensions", "Ingress" | "NetworkPolicy") => "networking.k8s.io",
        ("extensions" | "apps", "Scale") => "autoscaling",
        (group, _) => group,
    }
}

fn reshape(value: &mut Value, from: &GroupVersionKind, to: &GroupVersionKind) {
    if let Some(spoke) = find(from) {
        (spoke.to_hub)(value);
    }
    if let Some(spoke) = find(to) {
        (spoke.from_hub)(value);
    }
    // Items of lists have no apiVersion of their own, unless somebody put one there.
    if value.get("apiVersion").is_some() {
        value.set_at(&["apiVersion"], to.api_version().into());
    }
}

fn find(gvk: &GroupVersionKind) -> Option<&'static Spoke> {
    SPOKES.iter().find(|s| s.kind == gvk.kind && s.group == gvk.group && s.version == gvk.version)
}

fn item_kind(kind: &str) -> &str {
    kind.strip_suffix("List").unwrap_or(kind)
}

/// The items if the kind is the list of another kind.
fn items_of<'v>(catalog: &Catalog, gvk: &GroupVersionKind, value: &'v mut Value) -> Option<&'v mut Vec<Value>> {
    let item = GroupVersionKind { kind: gvk.kind.strip_suffix("List")?.into(), ..gvk.clone() };
    catalog.kind_type(&item)?;
    value.get_mut("items")?.as_array_mut()
}
