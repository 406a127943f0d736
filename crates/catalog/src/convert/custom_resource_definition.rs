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
    let name = spec.remove("version");
    if spec.get("versions").is_none_or(Value::is_empty)
        && let Some(name) = name.filter(|n| !n.is_empty())
    {
        let version: [(&str, Value); 3] = [("name", name), ("served", true.into()), ("storage", true.into())];
        spec.insert("versions", vec![Value::from(version)]);
    }
    for (per_version, common) in SHARED {
        let Some(shared) = spec.remove(common) else { continue };
        for version in versions(spec) {
            version.insert(per_version, shared.clone());
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
    let first = versions(spec).next().map(|v| (v.get("name").cloned(), SHARED.map(|(key, _)| v.get(key).cloned())));
    if let Some((name, shared)) = first {
        put(spec, "version", name);
        for ((per_version, common), value) in SHARED.into_iter().zip(shared) {
            let is_absent = |v: Option<&Value>| v.is_none_or(Value::is_empty);
            let value = value.filter(|v| !matches!(v, Value::Array(items) if items.is_empty()));
            let same = versions(spec).all(|v| {
                let own = v.get(per_version);
                own == value.as_ref()
                    || value.is_none() && own.is_none_or(|o| o.is_null() || o.as_array().is_some() && is_absent(own))
            });
            if same {
                versions(spec).for_each(|v| drop(v.remove(per_version)));
                put(spec, common, value);
            }
        }
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut)
        && let Some(Value::Object(mut webhook)) = conversion.remove("webhook")
    {
        put(conversion, "webhookClientConfig", webhook.remove("clientConfig"));
        put(conversion, "conversionReviewVersions", webhook.remove("conversionReviewVersions"));
    }
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
