//! Rules for definitions themselves.
//!
//! Definitions are judged in the form they are stored in (v1beta1), which is how the reference sees them, too: what all
//! versions have in common stands once, in `spec.validation`, `spec.subresources` and so on, and errors name it there.
//! What was accepted before may stay: `Leniency` says which rules an old definition breaks already.

mod conversion;
mod defaults;
mod internal;
mod leniency;
mod names;
mod parts;
pub mod rules;
mod schema;
mod spec;
mod structural;
pub mod walk;

pub use conversion::is_ca_bundle;
pub use leniency::Leniency;
pub use schema::unrecognized_formats;

use crate::controllers::conditions::{approval_state, is_protected};
use crate::definition::Definition;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::{Namespacing, validate_object_meta};
use kubelith_meta::{Str, Value};
use kubelith_rules::expression::Expressions;
use std::sync::Arc;

const ANNOTATION: &str = "api-approved.kubernetes.io";

/// Brings the metadata of resources within defaults into form, in all versions.
pub fn tidy_defaults(definition: &mut Value) {
    let versions = definition.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.at_mut(&["schema", "openAPIV3Schema"]) {
            defaults::tidy(schema);
        }
    }
}

/// What is wrong with a new definition.
pub fn create(object: &Value, expressions: &Arc<Expressions>) -> ErrorList {
    let plural = object.str_at(&["spec", "names", "plural"]);
    let group = object.str_at(&["spec", "group"]);
    let wanted = format!("{plural}.{group}");
    let path = Path::new("metadata");
    let mut errors = validate_object_meta(object.meta(), Namespacing::Forbidden, name_is_dns_subdomain, &path);
    let name = object.meta().name();
    if !name.is_empty() && name != wanted {
        let error = Error::invalid(&path.child("name"), name, r#"must be spec.names.plural+"."+spec.group"#);
        let names = errors.iter().take_while(|e| matches!(e.field.as_str(), "metadata.generateName" | "metadata.name"));
        let place = names.count();
        errors.insert(place, error);
    }
    errors.extend(spec::validate(object, &Leniency::none(expressions)));
    errors.extend(common(object, None));
    errors
}

/// What is wrong with a definition that replaces another.
pub fn update(object: &Value, old: &Value, expressions: &Arc<Expressions>) -> ErrorList {
    let mut errors = spec::validate(object, &Leniency::of(old, object, expressions));
    let immutable: &[&[&str]] = match Definition(old).is("Established") {
        true => &[&["scope"], &["names", "kind"], &["group"], &["names", "plural"]],
        false => &[&["group"], &["names", "plural"]],
    };
    let spec_path = Path::new("spec");
    for field in immutable {
        let at = |o: &Value| Str::from(o.get("spec").map_or("", |s| s.str_at(field)));
        if at(object) != at(old) {
            errors.push(Error::invalid(&spec_path.children(field), Value::String(at(object)), "field is immutable"));
        }
    }
    errors.extend(common(object, Some(old)));
    errors
}

/// What is wrong with a status.
pub fn status(object: &Value) -> ErrorList {
    names::validate(object.at(&["status", "acceptedNames"]), &Path::of(&["status", "acceptedNames"]))
}

fn common(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = status(object);
    errors.extend(stored_versions(object));
    errors.extend(approval(object, old));
    let preserves = |o: &Value| Definition(o).preserves_unknown();
    if preserves(object) && !old.is_some_and(preserves) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                   instead";
        errors.push(Error::invalid(&Path::of(&["spec", "preserveUnknownFields"]), true, why));
    }
    errors
}

fn stored_versions(object: &Value) -> ErrorList {
    let path = Path::of(&["status", "storedVersions"]);
    let value = object.at(&["status", "storedVersions"]).cloned().unwrap_or_default();
    let stored: Vec<&str> = value.as_array().unwrap_or(&[]).iter().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        return Error::invalid(&path, Value::Null, "must have at least one stored version").into();
    }
    let mut errors = ErrorList::default();
    let mut left: Vec<(usize, &str)> = stored.iter().copied().enumerate().collect();
    for version in Definition(object).versions() {
        let found = left.iter().position(|(_, name)| *name == version.name());
        if version.is_storage() && found.is_none() {
            errors.push(Error::invalid(&path, &value, format!("must have the storage version {}", version.name())));
        }
        left.retain(|(_, name)| *name != version.name());
    }
    for (i, name) in left {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        errors.push(Error::invalid(&path.index(i), name, why));
    }
    errors
}

fn approval(object: &Value, old: Option<&Value>) -> Option<Error> {
    if !is_protected(object.str_at(&["spec", "group"])) {
        return None;
    }
    let annotation = |o: &Value| o.meta().annotation(ANNOTATION).unwrap_or("").to_owned();
    let given = annotation(object);
    let (_, reason, message) = approval_state(&given);
    if old.is_some_and(|old| approval_state(&annotation(old)).1 == reason) {
        return None;
    }
    let path = Path::of(&["metadata", "annotations"]);
    match reason {
        "InvalidAnnotation" => Some(Error::invalid(&path.key(ANNOTATION), given, message)),
        "MissingAnnotation" => Some(Error::required(&path.key(ANNOTATION), message)),
        _ => None,
    }
}

/// Why the schema of a definition at v1 is not structural; `None` if it is.
pub fn non_structural(definition: Definition<'_>) -> Option<String> {
    // All others had to be structural to be accepted.
    if !definition.preserves_unknown() {
        return None;
    }
    let mut errors = ErrorList::default();
    errors.push(Error::invalid(&Path::of(&["spec", "preserveUnknownFields"]), true, "must be false"));
    let versions = Path::of(&["spec", "versions"]);
    for (i, version) in definition.versions().enumerate() {
        let Some(schema) = version.schema() else { continue };
        let at = versions.index(i);
        errors.extend(structural::validate(schema, &at.children(&["schema", "openAPIV3Schema"])));
    }
    (!errors.is_empty()).then(|| errors.to_string())
}
