//! `spec` as a whole.

use super::leniency::{Leniency, uses_extensions};
use super::parts::{self, TooMany};
use super::walk::{any, has, list, schemas};
use super::{conversion, internal, names, schema};
use crate::definition::Definition;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1035_label, is_dns1123_subdomain};
use kubelith_schema::structural::Structural;
use std::collections::HashSet;

const NOTHING: Value = Value::Null;

pub fn validate(object: &Value, leniency: &Leniency) -> ErrorList {
    let path = Path::new("spec");
    let spec = object.get("spec").unwrap_or(&NOTHING);
    let mut errors = ErrorList::default();
    group_and_scope(spec, &path, &mut errors);
    errors.extend(missing_schemas(spec, leniency, &path));
    let mut leniency = leniency.clone();
    let preserves = Definition(object).preserves_unknown();
    let has_defaults = schemas(object).any(|s| any(s, &mut |s| has(s, "default")));
    if has_defaults && preserves {
        let why = "must be false in order to use defaults in the schema";
        errors.push(Error::invalid(&path.child("preserveUnknownFields"), true, why));
    }
    if !preserves || has_defaults || schemas(object).any(uses_extensions) {
        leniency.non_structural = false;
    }
    versions(spec, &leniency, &path, &mut errors);
    for key in ["plural", "singular", "kind", "listKind"] {
        if spec.str_at(&["names", key]).is_empty() {
            errors.push(Error::required(&path.children(&["names", key]), ""));
        }
    }
    errors.extend(names::validate(spec.get("names"), &path.child("names")));
    let any_status = has_status(spec.get("subresources"))
        || list(spec, "versions").iter().any(|v| has_status(v.get("subresources")));
    let common = leniency.of_version(spec.str_at(&["version"]));
    errors.extend(schema::validate(spec.get("validation"), any_status, &common, &path.child("validation")));
    errors.extend(parts::subresources(spec.get("subresources"), &path.child("subresources")));
    errors.extend(parts::columns(spec, &path));
    if !list(spec, "selectableFields").is_empty() {
        match spec.at(&["validation", "openAPIV3Schema"]) {
            None => {
                let why = "may only be set when validations.schema is included";
                errors.push(Error::invalid(&path.child("selectableFields"), "", why));
            }
            Some(schema) => errors.extend(selectable(spec, schema, "", &leniency, &path)),
        }
    }
    let strategy = spec.str_at(&["conversion", "strategy"]);
    if has(spec, "conversion") && strategy != "None" && preserves {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(Error::invalid(&path.children(&["conversion", "strategy"]), strategy, why));
    }
    errors.extend(conversion::validate(spec.get("conversion"), &leniency, &path.child("conversion")));
    errors
}

fn selectable(of: &Value, schema: &Value, version: &str, leniency: &Leniency, path: &Path<'_>) -> ErrorList {
    let many = if leniency.many_selectable.iter().any(|v| v == version) { TooMany::AsBefore } else { TooMany::Refused };
    parts::selectable(of, &Structural::parse(schema), many, path)
}

fn group_and_scope(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let group = spec.str_at(&["group"]);
    let at = path.child("group");
    let problems = is_dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(Error::required(&at, ""));
    } else if !problems.is_empty() {
        errors.push(Error::invalid(&at, group, problems.join(",")));
    } else if !group.contains('.') {
        errors.push(Error::invalid(&at, group, "should be a domain with at least one dot"));
    }
    match spec.str_at(&["scope"]) {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(Error::required(&path.child("scope"), "")),
        other => errors.push(Error::not_supported(&path.child("scope"), other, ["Cluster", "Namespaced"])),
    }
}

fn missing_schemas(spec: &Value, leniency: &Leniency, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    if spec.at(&["validation", "openAPIV3Schema"]).is_some() {
        return errors;
    }
    let preserves = super::walk::flag(spec, "preserveUnknownFields");
    for (i, version) in list(spec, "versions").iter().enumerate() {
        if version.at(&["schema", "openAPIV3Schema"]).is_some() {
            continue;
        }
        let at = path.item("versions", i);
        let at = at.children(&["schema", "openAPIV3Schema"]);
        if !leniency.no_schema {
            errors.push(Error::required(&at, ""));
        } else if !preserves && super::walk::flag(version, "served") {
            errors.push(Error::required(&at, "because otherwise all fields are pruned"));
        }
    }
    errors
}

fn has_status(subresources: Option<&Value>) -> bool {
    subresources.is_some_and(|s| has(s, "status"))
}

fn versions(spec: &Value, leniency: &Leniency, path: &Path<'_>, errors: &mut ErrorList) {
    let versions = list(spec, "versions");
    let per_version = versions.iter().any(|v| has(v, "subresources"));
    let mut seen = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        let at = path.item("versions", i);
        let name = version.str_at(&["name"]);
        seen.insert(name);
        let problems = is_dns1035_label(name);
        if !problems.is_empty() {
            errors.push(Error::invalid(&at.child("name"), name, problems.join(",")));
        }
        let subresources = if per_version { version.get("subresources") } else { spec.get("subresources") };
        errors.extend(one_version(version, has_status(subresources), leniency, &at));
    }
    let at = path.child("versions");
    let shown = || internal::versions(spec.get("versions").unwrap_or(&NOTHING));
    if seen.len() != versions.len() {
        errors.push(Error::invalid(&at, shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|v| super::walk::flag(v, "storage")).count() != 1 {
        errors.push(Error::invalid(&at, shown(), "must have exactly one version marked as storage version"));
    }
    let first = spec.str_at(&["version"]);
    if !first.is_empty() {
        let problems = is_dns1035_label(first);
        if !problems.is_empty() {
            errors.push(Error::invalid(&path.child("version"), first, problems.join(",")));
        }
        if versions.first().is_some_and(|v| v.str_at(&["name"]) != first) {
            errors.push(Error::invalid(&path.child("version"), first, "must match the first version in spec.versions"));
        }
    }
}

fn one_version(version: &Value, status: bool, leniency: &Leniency, path: &Path<'_>) -> ErrorList {
    let mut errors = parts::deprecation(version, path);
    let own = leniency.of_version(version.str_at(&["name"]));
    errors.extend(schema::validate(version.get("schema"), status, &own, &path.child("schema")));
    errors.extend(parts::subresources(version.get("subresources"), &path.child("subresources")));
    errors.extend(parts::columns(version, path));
    if !list(version, "selectableFields").is_empty() {
        match version.at(&["schema", "openAPIV3Schema"]) {
            None => {
                let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(Error::invalid(&path.child("selectableFields"), "", why));
            }
            Some(schema) => errors.extend(selectable(version, schema, version.str_at(&["name"]), leniency, path)),
        }
    }
    errors
}
