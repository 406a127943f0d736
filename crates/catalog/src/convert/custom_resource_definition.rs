//! CustomResourceDefinitions: v1beta1 is how they are stored. What all versions have in common stands there once,
//! in the spec, which is the reason for storing it: some schemas would be too large as v1.

use super::values::{object, objects_at, put, rename};
use kubelith_meta::{Map, Value};

/// Per version in v1, and per version or in common in v1beta1.
const SHARED: [(&str, &str); 4] = [
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("schema", "validation"),
    ("selectableFields", "selectableFields"),
    ("subresources", "subresources"),
];

pub fn to_v1(crd: &mut Value) {
    let Some(spec) = object(crd, "spec") else { return };
    // Absent means true in v1beta1: there was no pruning before there was this field.
    if spec.get("preserveUnknownFields").is_none_or(Value::is_null) {
        spec.insert("preserveUnknownFields", true);
    }
    let name = spec.remove("version");
    if spec.get("versions").is_none_or(Value::is_empty)
        && let Some(name) = name.filter(|n| !n.is_empty())
    {
        let version: [(&str, Value); 3] = [("name", name), ("served", true.into()), ("storage", true.into())];
        spec.insert("versions", vec![Value::from(version)]);
    }
    for (per_version, common) in SHARED {
        let Some(mut shared) = spec.remove(common) else { continue };
        let mut left = versions(spec).count();
        for version in versions(spec) {
            left -= 1;
            // Schemas are large, and most definitions have one version.
            let own = if left == 0 { std::mem::take(&mut shared) } else { shared.clone() };
            version.insert(per_version, own);
        }
    }
    for version in versions(spec) {
        columns(version, "JSONPath", "jsonPath");
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let mut webhook = Map::new();
        put(&mut webhook, "clientConfig", conversion.remove("webhookClientConfig"));
        let reviews = conversion.remove("conversionReviewVersions");
        if !webhook.is_empty() || reviews.is_some() {
            put(&mut webhook, "conversionReviewVersions", reviews);
            conversion.insert("webhook", webhook);
        }
    }
}

pub fn from_v1(crd: &mut Value) {
    let Some(spec) = object(crd, "spec") else { return };
    // v1 does not print false, v1beta1 tells it from absent, which means true there.
    let preserve = spec.remove("preserveUnknownFields").unwrap_or(Value::Bool(false));
    spec.insert("preserveUnknownFields", preserve);
    for version in versions(spec) {
        columns(version, "jsonPath", "JSONPath");
    }
    let first = versions(spec).next().map(|v| v.get("name").cloned());
    if let Some(name) = first {
        put(spec, "version", name);
        for (per_version, common) in SHARED {
            if !all_same(spec, per_version) {
                continue;
            }
            let mut values = versions(spec).map(|v| v.remove(per_version));
            let value = values.next().flatten();
            values.for_each(drop);
            put(spec, common, value.filter(|v| !is_nothing(v)));
        }
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut)
        && let Some(Value::Object(mut webhook)) = conversion.remove("webhook")
    {
        put(conversion, "webhookClientConfig", webhook.remove("clientConfig"));
        put(conversion, "conversionReviewVersions", webhook.remove("conversionReviewVersions"));
    }
}

/// Whether all versions say the same, or nothing.
fn all_same(spec: &Map, key: &str) -> bool {
    let versions = spec.get("versions").and_then(Value::as_array).unwrap_or(&[]);
    let mut values =
        versions.iter().filter_map(Value::as_object).map(|version| version.get(key).filter(|v| !is_nothing(v)));
    let first = values.next().flatten();
    values.all(|value| value == first)
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(<[_]>::is_empty)
}

fn versions(spec: &mut Map) -> impl Iterator<Item = &mut Map> {
    let items = spec.get_mut("versions").and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    items.iter_mut().filter_map(Value::as_object_mut)
}

fn columns(version: &mut Map, from: &str, to: &str) {
    if let Some(columns) = version.get_mut("additionalPrinterColumns") {
        objects_at(columns, &[]).for_each(|column| rename(column, from, to));
    }
}
