//! The schemas of a custom resource by version, and what decoding into Go structs would do for a built-in one:
//! metadata is brought into its form, unknown fields and meaningless nulls go.

use crate::definition::Definition;
use kubelith_codec::json::{self, StrictError, Strictness};
use kubelith_codec::typed;
use kubelith_meta::field::{Error, Path};
use kubelith_meta::text::quote;
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_schema::structural::{self, Structural};
use kubelith_schema::{Empties, TypedSchema, canonicalize};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

static METADATA: LazyLock<TypedSchema> =
    LazyLock::new(|| kubelith_catalog::builtin().type_schema(OBJECT_META).expect("the catalogue has ObjectMeta"));

pub struct Schemas {
    pub group: Str,
    pub kind: Str,
    /// Of the definition.
    pub generation: i64,
    by_version: HashMap<Str, Arc<Structural>>,
    prunes: bool,
    /// Some schema has resources within.
    embeds: bool,
}

/// What to do with metadata that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    Refuse,
    /// Objects of the time before metadata was checked must stay readable.
    Drop,
}

/// What to do with nulls where null is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    Drop,
    Keep,
}

impl Schemas {
    pub fn new(definition: Definition<'_>) -> Schemas {
        let parse = |schema: Option<&Value>| Arc::new(schema.map(prepared).unwrap_or_default());
        let by_version: HashMap<Str, Arc<Structural>> =
            definition.versions().map(|v| (v.name().into(), parse(v.schema()))).collect();
        Schemas {
            group: definition.group().into(),
            kind: definition.accepted_names().kind,
            generation: definition.generation(),
            embeds: by_version.values().any(|schema| schema.any(&|s| s.embedded)),
            by_version,
            prunes: !definition.preserves_unknown(),
        }
    }

    pub fn of(&self, version: &str) -> Option<&Arc<Structural>> {
        self.by_version.get(version)
    }

    /// The schema of what `object` says it is, if it is one of ours.
    fn of_object(&self, object: &Value) -> Option<Option<&Structural>> {
        let version = GroupVersion::parse(object.str_at(&["apiVersion"]))?;
        let ours = version.group == self.group && object.str_at(&["kind"]) == self.kind;
        ours.then(|| self.of(&version.version).map(Arc::as_ref))
    }

    /// Fills in the defaults of the version that the object is in.
    pub fn apply_defaults(&self, object: &mut Value) {
        if let Some(Some(schema)) = self.of_object(object) {
            structural::apply_defaults(schema, object);
            self.tidy_embedded(schema, object);
        }
    }

    /// Resources within are left without what they cannot have, be it from a default.
    fn tidy_embedded(&self, schema: &Structural, object: &mut Value) {
        if self.embeds {
            let embedded = Embedded { malformed: Malformed::Drop, strictness: Strictness::Lenient };
            let read = embedded.walk(schema, object, &Path::ROOT, &mut Vec::new());
            debug_assert!(read.is_ok(), "nothing is refused");
        }
    }

    /// Prunes and tidies an object; its metadata was read already. Answers the paths of unknown fields.
    pub fn tidy(&self, object: &mut Value, strictness: Strictness) -> Vec<String> {
        self.prune(object, strictness, Nulls::Drop)
    }

    fn prune(&self, object: &mut Value, strictness: Strictness, nulls: Nulls) -> Vec<String> {
        let Some(schema) = self.of_object(object) else { return Vec::new() };
        if !self.prunes {
            return Vec::new();
        }
        let nothing = Structural::default();
        let schema = schema.unwrap_or(&nothing);
        let unknown = match strictness {
            Strictness::Lenient => {
                structural::prune(schema, object);
                Vec::new()
            }
            Strictness::Report => structural::prune_reporting(schema, object),
        };
        if nulls == Nulls::Drop {
            structural::drop_nulls(schema, object);
        }
        unknown
    }

    /// All that decoding does to an object. Answers the paths of unknown fields, or why the object cannot be read.
    pub fn coerce(&self, object: &mut Value, strictness: Strictness, nulls: Nulls) -> Result<Vec<String>, String> {
        let mut unknown = match object.get_mut("metadata") {
            Some(metadata) => read_metadata(metadata, strictness, "metadata")?,
            None => Vec::new(),
        };
        unknown.extend(self.prune(object, strictness, nulls));
        if let Some(Some(schema)) = self.of_object(object) {
            let mut found = Vec::new();
            let embedded = Embedded { malformed: Malformed::Refuse, strictness };
            embedded.walk(schema, object, &Path::ROOT, &mut found).map_err(|e| e.to_string())?;
            found.sort();
            unknown.extend(found);
        }
        Ok(unknown)
    }

    /// What reading from the store does to an object: whatever was written once can be read.
    pub fn restore(&self, object: &mut Value) {
        if let Some(metadata) = object.get_mut("metadata") {
            // Nearly all of it was checked when it was written. Whatever else is there must not make it unreadable.
            if !is_plain(metadata) && metadata.as_object().is_some() {
                read_what_can_be(metadata);
            }
            canonicalize(&METADATA.table, &METADATA.root, metadata, Empties::Distinct);
            if metadata.get("generation").is_none_or(Value::is_empty) {
                metadata.set_at(&["generation"], Value::Int(1));
            }
        }
        self.tidy(object, Strictness::Lenient);
        if let Some(Some(schema)) = self.of_object(object) {
            structural::apply_defaults(schema, object);
            self.tidy_embedded(schema, object);
        }
    }
}

/// A schema with defaults as they will be filled in: without what the schema itself does not know.
fn prepared(schema: &Value) -> Structural {
    let mut schema = Structural::parse(schema);
    schema.prune_defaults();
    schema
}

/// Whether metadata has the form in which we write it, by a glance: then it can be read, and need not be.
fn is_plain(metadata: &Value) -> bool {
    let text = |v: &Value| v.as_str().is_some();
    let time = |v: &Value| v.as_str().is_some_and(|t| t.len() == "2006-01-02T15:04:05Z".len() && t.ends_with('Z'));
    let texts = |v: &Value| v.as_object().is_some_and(|m| m.iter().all(|(_, v)| text(v)));
    let owner = |v: &Value| {
        v.as_object().is_some_and(|m| {
            m.iter().all(|(key, v)| match key {
                "apiVersion" | "kind" | "name" | "uid" => text(v),
                "controller" | "blockOwnerDeletion" => v.as_bool().is_some(),
                _ => false,
            })
        })
    };
    let list = |v: &Value, of: &dyn Fn(&Value) -> bool| v.as_array().is_some_and(|items| items.iter().all(of));
    metadata.as_object().is_some_and(|map| {
        map.iter().all(|(key, value)| match key {
            "name" | "namespace" | "uid" | "generateName" | "resourceVersion" => text(value),
            "creationTimestamp" | "deletionTimestamp" => time(value),
            "generation" | "deletionGracePeriodSeconds" => value.as_i64().is_some(),
            "labels" | "annotations" => texts(value),
            "finalizers" => list(value, &text),
            "ownerReferences" => list(value, &owner),
            "managedFields" => list(value, &|v| v.as_object().is_some()),
            _ => false,
        })
    })
}

/// Reads a metadata as Go does, in place. If that cannot be, field by field, and what fails goes.
fn read_what_can_be(metadata: &mut Value) {
    let mut whole = metadata.clone();
    if read_metadata(&mut whole, Strictness::Lenient, "").is_ok() {
        *metadata = whole;
        return;
    }
    let Some(map) = metadata.as_object_mut() else { return };
    map.retain(|key, value| {
        let mut alone = Value::from([(key, value.clone())]);
        let read = read_metadata(&mut alone, Strictness::Lenient, "").is_ok();
        *value = alone.remove_at(&[key]).unwrap_or_default();
        read && !value.is_null()
    });
}

/// Reads a metadata as Go does, in place.
fn read_metadata(metadata: &mut Value, strictness: Strictness, path: &str) -> Result<Vec<String>, String> {
    let text = json::to_vec(metadata);
    let decoded = typed::decode(&text, &METADATA, strictness).map_err(|e| e.to_string())?;
    *metadata = decoded.value;
    canonicalize(&METADATA.table, &METADATA.root, metadata, Empties::Distinct);
    let unknown = decoded.strict.iter().filter_map(|error| match error {
        StrictError::UnknownField(field) => Some(format!("{path}.{field}")),
        _ => None,
    });
    Ok(unknown.collect())
}

/// Brings the metadata of embedded resources into its form.
pub(crate) struct Embedded {
    malformed: Malformed,
    strictness: Strictness,
}

impl Embedded {
    /// What is wrong with the metadata of resources in `value`, if it cannot be read.
    pub(crate) fn check(schema: &Structural, value: &Value, path: &Path<'_>) -> Result<(), Error> {
        let embedded = Embedded { malformed: Malformed::Refuse, strictness: Strictness::Lenient };
        embedded.walk(schema, &mut value.clone(), path, &mut Vec::new())
    }

    /// Brings the metadata of resources in `value` into form: without what it cannot have. What cannot be read stays.
    pub(crate) fn tidy(schema: &Structural, value: &mut Value) {
        let embedded = Embedded { malformed: Malformed::Refuse, strictness: Strictness::Lenient };
        let mut tidied = value.clone();
        if embedded.walk(schema, &mut tidied, &Path::ROOT, &mut Vec::new()).is_ok() {
            *value = tidied;
        }
    }

    fn walk(&self, s: &Structural, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), Error> {
        match value {
            Value::Object(map) => {
                if s.embedded {
                    let mut dropped = Vec::new();
                    for (key, member) in map.iter_mut() {
                        if !self.member(key, member, &path.child(key), unknown)? {
                            dropped.push(Str::from(key));
                        }
                    }
                    for key in dropped {
                        map.remove(&key);
                    }
                }
                for (key, member) in map.iter_mut() {
                    if let Some(property) = s.property(key) {
                        self.walk(property, member, &path.child(key), unknown)?;
                    } else if let Some(additional) = s.additional_schema() {
                        self.walk(additional, member, &path.key(key), unknown)?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = s.items.as_deref() else { return Ok(()) };
                for (i, item) in items.iter_mut().enumerate() {
                    self.walk(schema, item, &path.index(i), unknown)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// One of the members that every resource has; false if it is to be dropped.
    fn member(&self, key: &str, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<bool, Error> {
        match key {
            "apiVersion" | "kind" if value.as_str().is_none() => match self.malformed {
                Malformed::Drop => Ok(false),
                Malformed::Refuse => Err(Error::invalid(path, &*value, "must be a string")),
            },
            "metadata" => {
                let mut read = value.clone();
                match read_metadata(&mut read, self.strictness, &path.to_string()) {
                    Ok(found) => {
                        unknown.extend(found);
                        *value = if read.is_null() { Value::object() } else { read };
                        if value.get("creationTimestamp").is_some_and(Value::is_null) {
                            value.remove_at(&["creationTimestamp"]);
                        }
                    }
                    Err(why) if self.malformed == Malformed::Refuse => {
                        return Err(Error::invalid(path, &*value, why));
                    }
                    Err(_) => read_what_can_be(value),
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }
}

/// `unknown field "spec.a"`, as strict decoding words it.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {}", quote(path))
}
