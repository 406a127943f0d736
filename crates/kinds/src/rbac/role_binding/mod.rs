//! RoleBindings.

use crate::rbac::bindings::{account_of, binding, binding_update, name_of, subject, subjects};
use kubelith_meta::object::Namespacing;
use kubelith_rules::cells::Cells;
use kubelith_rules::defaults::Defaults;
use kubelith_rules::{Kind, Rules};

pub const ROLE_BINDING: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    plural: "rolebindings",
    defaults: DEFAULTS,
    rules: RULES,
    cells: CELLS,
    ..Kind::PLAIN
}
.upserts();

pub const DEFAULTS: Defaults = &[("io.k8s.api.rbac.v1.Subject", subject)];

pub const RULES: Rules = Rules {
    create: |_, binding| self::binding(binding, Namespacing::Required),
    update: |_, new, old| binding_update(new, old, Namespacing::Required),
};

pub const CELLS: Cells = &[
    ("role_reference", |row| {
        Some(format!("{}/{}", row.text(&["roleRef", "kind"]), row.text(&["roleRef", "name"])).into())
    }),
    ("subject_users", |row| Some(subjects(row, "User", name_of))),
    ("subject_groups", |row| Some(subjects(row, "Group", name_of))),
    ("subject_service_accounts", |row| Some(subjects(row, "ServiceAccount", account_of))),
];
