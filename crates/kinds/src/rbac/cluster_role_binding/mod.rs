//! ClusterRoleBindings.

use crate::rbac::bindings::{binding, binding_update};
use kubelith_meta::object::Namespacing;
use kubelith_rules::{Kind, Rules};

pub const CLUSTER_ROLE_BINDING: Kind =
    Kind { group: "rbac.authorization.k8s.io", plural: "clusterrolebindings", rules: RULES, ..Kind::PLAIN }.upserts();

pub const RULES: Rules = Rules {
    create: |_, binding| self::binding(binding, Namespacing::Forbidden),
    update: |_, new, old| binding_update(new, old, Namespacing::Forbidden),
};
