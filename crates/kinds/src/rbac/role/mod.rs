//! Roles.

use crate::rbac::roles::{role_rules, with_update};
use kubelith_meta::object::Namespacing;
use kubelith_rules::{Kind, Rules};

pub const ROLE: Kind =
    Kind { group: "rbac.authorization.k8s.io", plural: "roles", rules: RULES, ..Kind::PLAIN }.upserts();

pub const RULES: Rules = Rules {
    create: |_, role| role_rules(role, Namespacing::Required),
    update: |_, new, old| with_update(role_rules(new, Namespacing::Required), new, old),
};
