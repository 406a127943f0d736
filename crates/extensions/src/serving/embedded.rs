//! Rules for resources inside of resources (`x-kubernetes-embedded-resource`): they have a type, and metadata like any.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{self, is_dns1035_label};
use kubelith_meta::object::{Namespacing, validate_object_meta};
use kubelith_meta::{GroupVersion, Map, Value};
use kubelith_schema::structural::Structural;

pub fn validate(schema: &Structural, object: &Value) -> ErrorList {
    validate_at(schema, object, &Path::ROOT)
}

/// What stands at `path`.
pub fn validate_at(schema: &Structural, value: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    if schema.any(&|s| s.embedded) {
        walk(schema, value, path, &mut errors);
    }
    errors
}

fn walk(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                resource(map, path, errors);
            }
            for (key, member) in map.iter() {
                if let Some(property) = schema.property(key) {
                    walk(property, member, &path.child(key), errors);
                } else if let Some(additional) = schema.additional_schema() {
                    walk(additional, member, &path.key(key), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                for (i, item) in items.iter().enumerate() {
                    walk(schema, item, &path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn resource(map: &Map, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["apiVersion", "kind"].iter().filter(|key| !map.contains_key(key)) {
        errors.push(Error::required(&path.child(key), ""));
    }
    for (key, value) in map.iter() {
        let at = path.child(key);
        match (key, value.as_str()) {
            ("apiVersion" | "kind", None) => errors.push(Error::invalid(&at, value, "must be a string")),
            ("apiVersion" | "kind", Some("")) => errors.push(Error::invalid(&at, "", "must not be empty")),
            ("apiVersion", Some(text)) if GroupVersion::parse(text).is_none() => {
                errors.push(Error::invalid(&at, text, format!("unexpected GroupVersion string: {text}")));
            }
            ("kind", Some(text)) => {
                let problems = is_dns1035_label(&text.to_lowercase());
                if !problems.is_empty() {
                    let why = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
                    errors.push(Error::invalid(&at, text, why));
                }
            }
            ("metadata", _) => errors.extend(metadata(value, &at)),
            _ => {}
        }
    }
}

fn metadata(value: &Value, path: &Path<'_>) -> ErrorList {
    let mut object = Value::object();
    object.set_at(&["metadata"], value.clone());
    if object.meta().name().is_empty() {
        // Metadata without a name is fine here; for the rules it must have one.
        object.set_at(&["metadata", "name"], "fakename".into());
    }
    let namespacing = match object.meta().namespace().is_empty() {
        true => Namespacing::Forbidden,
        false => Namespacing::Required,
    };
    validate_object_meta(object.meta(), namespacing, names::name_is_path_segment, path)
}
