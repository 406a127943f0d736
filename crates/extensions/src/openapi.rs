//! Custom resources in OpenAPI. Schemas are written from the stored definition when a document is asked for.

use crate::controllers::Known;
use crate::definition::{self, Definition, VersionSpec};
use kubelith_meta::{GroupVersion, Map, Value};
use kubelith_openapi::{DeleteAnswer, Detail, Dialect, Published, Renamed, Words};
use kubelith_store::cache::CachedObject;
use std::sync::Arc;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// What clients are told of the type of a resource inside of a resource.
const EMBEDDED_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More \
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const JUNCTORS: [&str; 4] = ["allOf", "anyOf", "not", "oneOf"];

/// A definition as one of its group versions publishes it; `None` if it has no part in it.
pub fn published(known: &Known, gv: &GroupVersion) -> Option<Published> {
    let descriptor = known.published.as_ref().filter(|d| d.group == gv.group)?;
    let index = descriptor.versions.iter().position(|v| v.name == gv.version && v.served)?;
    let (object, version) = (known.object.clone(), gv.clone());
    Some(Published {
        descriptor: descriptor.clone(),
        version_index: index,
        delete_answer: DeleteAnswer::Status,
        detail: Detail::Brief,
        written: Some(Arc::new(move |dialect, words: &Words| schema(&object, &version, dialect, words))),
        renamed: Renamed::default(),
    })
}

fn schema(object: &CachedObject, gv: &GroupVersion, dialect: Dialect, words: &Words) -> Value {
    let Ok(object) = definition::read(object) else { return Value::from([("type", "object")]) };
    let definition = Definition(&object);
    let spec = definition.versions().find(|v| v.name() == gv.version);
    let root = spec.and_then(|v| root(definition, v, dialect, words));
    let mut root = root.unwrap_or_else(|| [("type", "object")].into());
    let kind = [("group", gv.group.as_str()), ("kind", &definition.names().kind), ("version", &gv.version)];
    root.set_at(&["x-kubernetes-group-version-kind"], Value::Array(vec![kind.into()]));
    let fields = spec.into_iter().flat_map(VersionSpec::selectable).map(|path| {
        let name = path.trim_start_matches('.');
        Value::from([("fieldPath", name)])
    });
    let fields: Vec<Value> = fields.collect();
    if !fields.is_empty() {
        root.set_at(&["x-kubernetes-selectable-fields"], Value::Array(fields));
    }
    root
}

/// The schema with what every object has; `None` if nothing can be said.
fn root(definition: Definition<'_>, spec: VersionSpec<'_>, dialect: Dialect, words: &Words) -> Option<Value> {
    let mut schema = spec.schema()?.clone();
    if dialect == Dialect::V2 && (preserves(&schema) || definition.preserves_unknown()) {
        return None;
    }
    write(&mut schema, dialect, words);
    let [version, kind] = ["apiVersion", "kind"].map(|field| words.of_every_object(field));
    add_type(&mut schema, version, kind, dialect, words);
    Some(schema)
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn preserves(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-preserve-unknown-fields")
}

/// What every object has: `version` and `kind` describe its type.
fn add_type(schema: &mut Value, version: &str, kind: &str, dialect: Dialect, words: &Words) {
    let text = |description: &str| Value::from([("description", description), ("type", "string")]);
    schema.set_at(&["properties", "apiVersion"], text(version));
    schema.set_at(&["properties", "kind"], text(kind));
    let reference = Value::from([("$ref", dialect.reference(OBJECT_META))]);
    let metadata = match dialect {
        Dialect::V2 => reference,
        Dialect::V3 => Value::from([("allOf", Value::Array(vec![reference]))]),
    };
    schema.set_at(&["properties", "metadata"], metadata);
    schema.set_at(&["properties", "metadata", "description"], words.of_every_object("metadata").into());
}

/// Brings a schema into the form that a dialect publishes, in place.
fn write(schema: &mut Value, dialect: Dialect, words: &Words) {
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let hides = dialect == Dialect::V2 && preserves(schema);
    let Some(map) = schema.as_object_mut() else { return };
    match dialect {
        Dialect::V2 => simplify(map),
        Dialect::V3 => unfold(map),
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = map.get_mut(key) {
            write(part, dialect, words);
        }
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.iter_mut().for_each(|(_, property)| write(property, dialect, words));
    }
    if embedded && !hides {
        add_type(schema, EMBEDDED_VERSION, EMBEDDED_KIND, dialect, words);
        let mut required = schema.get("required").and_then(Value::as_array).unwrap_or(&[]).to_vec();
        for key in ["kind", "apiVersion"].map(Value::from) {
            if !required.contains(&key) {
                required.push(key);
            }
        }
        schema.set_at(&["required"], Value::Array(required));
    }
}

/// An integer or string says so in words that everybody understands.
fn unfold(schema: &mut Map) {
    if schema.get("x-kubernetes-int-or-string") != Some(&Value::Bool(true)) {
        return;
    }
    let either = Value::Array(["integer", "string"].map(|kind| Value::from([("type", kind)])).to_vec());
    let all = schema.get("allOf").and_then(Value::as_array).unwrap_or(&[]);
    match schema.get("anyOf") {
        None if all.first().and_then(|first| first.get("anyOf")) == Some(&either) => {}
        None => drop(schema.insert("anyOf", either)),
        Some(any) if *any == either => {}
        Some(_) => {
            let mut all = all.to_vec();
            all.insert(0, Value::from([("anyOf", either)]));
            schema.insert("allOf", Value::Array(all));
        }
    }
}

/// Version 2 knows less: what it cannot say is left out, and where that would be wrong, all is.
fn simplify(schema: &mut Map) {
    JUNCTORS.iter().for_each(|key| drop(schema.remove(key)));
    schema.remove("default");
    if schema.remove("nullable") == Some(Value::Bool(true)) {
        ["type", "items", "properties"].iter().for_each(|key| drop(schema.remove(key)));
    }
    let is = |schema: &Map, kind: &str| schema.get("type").and_then(Value::as_str) == Some(kind);
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        ["items", "properties"].iter().for_each(|key| drop(schema.remove(key)));
        if is(schema, "object") {
            schema.remove("type");
        }
    }
    if is(schema, "array") && schema.get("items").is_none() {
        schema.remove("type");
    }
    let nullable = |key: &str| schema.get("properties").and_then(|p| p.get(key)).is_some_and(|p| flag(p, "nullable"));
    let Some(required) = schema.get("required").and_then(Value::as_array) else { return };
    let kept: Vec<Value> = required.iter().filter(|key| !key.as_str().is_some_and(nullable)).cloned().collect();
    match kept.is_empty() {
        true => drop(schema.remove("required")),
        false => drop(schema.insert("required", Value::Array(kept))),
    }
}
