//! What is migrated, and how far it is.

use crate::internal::storage_version::validate::STATUS;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::{Messages, is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_conditions};
use kubelith_rules::common::{Fields, SPEC, immutable, invalid_all, member, meta, meta_update};
use kubelith_rules::{Rules, internal};

pub const RULES: Rules = Rules {
    create: |_, migration| check_migration(migration),
    update: |request, new, old| {
        if request.subresource == "status" {
            return check_progress(new, old);
        }
        let mut errors = check_migration(new);
        errors.extend(meta_update(new, old));
        immutable(new.get("spec"), old.get("spec"), &SPEC, &mut errors);
        errors
    },
};

fn check_migration(migration: &Value) -> ErrorList {
    let mut errors = meta(migration, Namespacing::Forbidden, name_is_dns_subdomain);
    let of = member(member(migration, "spec"), "resource");
    let path = SPEC.child("resource");
    let joined = |problems: Messages| if problems.is_empty() { problems } else { vec![problems.join(",")] };
    match of.text("resource") {
        "" => errors.push(Error::required(&path.child("resource"), "resource is required to be set")),
        name => invalid_all(joined(is_dns1035_label(name)), &path.child("resource"), name, &mut errors),
    }
    match of.text("group") {
        "" => {}
        group => invalid_all(joined(is_dns1123_subdomain(group)), &path.child("group"), group, &mut errors),
    }
    errors
}

fn check_progress(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    let (status, before) = (member(new, "status"), member(old, "status"));
    let (version, old_version) = (status.text("resourceVersion"), before.text("resourceVersion"));
    let path = STATUS.child("resourceVersion");
    if let Some(why) = version_problem(version).filter(|_| !version.is_empty()) {
        errors.push(Error::invalid(&path, version, why));
    }
    errors.extend(validate_conditions(status.list("conditions"), &STATUS.child("conditions")));
    if !old_version.is_empty() && version != old_version {
        errors.push(Error::invalid(&path, version, "field is immutable"));
    }
    let holds = |status: &Value, kind: &str| {
        let condition = status.list("conditions").iter().find(|condition| condition.text("type") == kind);
        condition.is_some_and(|condition| condition.text("status") == "True")
    };
    let [succeeded, failed] = ["Succeeded", "Failed"].map(|kind| (holds(before, kind), holds(status, kind)));
    let mut refuse = |detail: &str| {
        let shown = internal::shown("[]Condition", status.get("conditions"));
        errors.push(Error::invalid(&STATUS.child("conditions"), shown, detail));
    };
    if succeeded.1 && failed.1 {
        refuse("Both success and failed conditions cannot be true at the same time");
    }
    if succeeded == (true, false) {
        refuse("Success condition cannot be set to false once it is true");
    }
    if failed == (true, false) {
        refuse("Failed condition cannot be set to false once it is true");
    }
    errors
}

/// Why a text is no resource version that can be compared.
fn version_problem(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("resource version is empty".into());
    }
    let is_number = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    (!is_number).then(|| format!("resource version is not well formed: {text}"))
}
