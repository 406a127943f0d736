//! Subjects of bindings, and their cells.

use crate::rbac::roles::with_update;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_subdomain, name_is_path_segment};
use kubelith_meta::object::Namespacing;
use kubelith_meta::{Map, Value};
use kubelith_rules::cells::Row;
use kubelith_rules::common::{Fields, member, meta, name_full, same_member};
use kubelith_rules::defaults::{is_zero, text};
use kubelith_rules::internal;

const GROUP: &str = "rbac.authorization.k8s.io";

pub fn binding(binding: &Value, namespaced: Namespacing) -> ErrorList {
    let mut errors = meta(binding, namespaced, name_is_path_segment);
    let role = member(binding, "roleRef");
    let path = Path::new("roleRef");
    if role.text("apiGroup") != GROUP {
        errors.push(Error::not_supported(&path.child("apiGroup"), role.text("apiGroup"), [GROUP]));
    }
    let kinds: &[&str] = match namespaced {
        Namespacing::Required => &["Role", "ClusterRole"],
        Namespacing::Forbidden => &["ClusterRole"],
    };
    if !kinds.contains(&role.text("kind")) {
        errors.push(Error::not_supported(&path.child("kind"), role.text("kind"), kinds));
    }
    if role.text("name").is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    } else {
        name_full(name_is_path_segment, role.text("name"), &path.child("name"), &mut errors);
    }
    for (i, subject) in binding.list("subjects").iter().enumerate() {
        check_subject(subject, namespaced, &Path::new("subjects").index(i), &mut errors);
    }
    errors
}

fn check_subject(subject: &Value, namespaced: Namespacing, path: &Path<'_>, errors: &mut ErrorList) {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                name_full(name_is_dns_subdomain, name, &path.child("name"), errors);
            }
            if !group.is_empty() {
                errors.push(Error::not_supported(&path.child("apiGroup"), group, [""]));
            }
            if namespaced == Namespacing::Forbidden && subject.text("namespace").is_empty() {
                errors.push(Error::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(Error::not_supported(&path.child("apiGroup"), group, [GROUP]));
            }
        }
        kind => errors.push(Error::not_supported(&path.child("kind"), kind, ["ServiceAccount", "User", "Group"])),
    }
}

pub fn binding_update(new: &Value, old: &Value, namespaced: Namespacing) -> ErrorList {
    let mut errors = with_update(binding(new, namespaced), new, old);
    if !same_member(new, old, "roleRef") {
        let shown = internal::shown("RoleRef", new.get("roleRef"));
        errors.push(Error::invalid(&Path::new("roleRef"), shown, "cannot change roleRef"));
    }
    errors
}

/// Users and groups are of the group of RBAC; service accounts are of the core group.
pub fn subject(subject: &mut Map) {
    if is_zero(subject, "apiGroup") && matches!(text(subject, "kind"), "User" | "Group") {
        subject.insert("apiGroup", "rbac.authorization.k8s.io");
    }
}

pub fn subjects(row: &Row<'_>, kind: &str, format: fn(&Value) -> String) -> Value {
    let of_kind = row.list(&["subjects"]).iter().filter(|s| s.str_at(&["kind"]) == kind);
    of_kind.map(format).collect::<Vec<_>>().join(", ").into()
}

pub fn name_of(subject: &Value) -> String {
    subject.str_at(&["name"]).to_owned()
}

pub fn account_of(subject: &Value) -> String {
    format!("{}/{}", subject.str_at(&["namespace"]), subject.str_at(&["name"]))
}
