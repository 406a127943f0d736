//! Defaults by resource: what clients leave out of an object, filled in at the version they speak.
//!
//! Plain defaults stand in the catalogue (`= v`, `:= v`); `kubelith_schema::defaults` fills them in. Here are the
//! rules for what depends on other fields, each for a type, in files by concept. A few of them do what the reference
//! does while it converts between a version and its internal form; their comments name the upstream file. Feature gates
//! count with their defaults.

mod autoscaling;
mod cluster;
mod devices;
mod extensions;
mod image;
mod network;
mod objects;
mod pods;
mod resources;
mod storage;
mod workloads;

pub use workloads::follows_template;

use kubelith_catalog::Catalog;
use kubelith_meta::{GroupVersionKind, Map, Str, Value};
use kubelith_schema::defaults::Rule;
use kubelith_schema::{Defaulting, TypedSchema};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Fills in what a client left out of an object at the given version. Running it again changes nothing.
pub type DefaultFn = &'static (dyn Fn(&str, &mut Value) + Send + Sync);

type BoxedDefault = Box<dyn Fn(&str, &mut Value) + Send + Sync>;

/// Rules by the OpenAPI names of their types.
type Rules = &'static [(&'static str, Rule)];

const RULES: [Rules; 10] = [
    autoscaling::RULES,
    cluster::RULES,
    devices::RULES,
    extensions::RULES,
    network::RULES,
    objects::RULES,
    pods::RULES,
    resources::RULES,
    storage::RULES,
    workloads::RULES,
];

/// For kinds that have no defaults.
pub const NOTHING: DefaultFn = &|_, _| {};

static BUILTIN: LazyLock<Builtin> = LazyLock::new(|| Builtin::new(kubelith_catalog::builtin()));

/// The defaulting of a resource.
pub fn of(group: &str, plural: &str) -> DefaultFn {
    match BUILTIN.resources.get(&(Str::from(group), Str::from(plural))) {
        Some(function) => &**function,
        None => NOTHING,
    }
}

/// Completes an object of a kind that may be no resource: a TokenRequest, for example.
pub fn fill_kind(kind: &GroupVersionKind, object: &mut Value) {
    if let Some(schema) = kubelith_catalog::builtin().kind_schema(kind) {
        BUILTIN.defaulting.fill(&schema.root, object);
    }
}

/// All built-in kinds. It is made on first use, which takes well under a millisecond.
struct Builtin {
    defaulting: Defaulting,
    /// By group and plural; only those that have any defaults.
    resources: HashMap<(Str, Str), BoxedDefault>,
}

impl Builtin {
    fn new(catalog: &'static Catalog) -> Builtin {
        let rules = RULES.into_iter().flatten().copied();
        let defaulting = Defaulting::new(catalog.table.clone(), rules);
        let mut resources: HashMap<_, BoxedDefault> = HashMap::new();
        for descriptor in &catalog.descriptors {
            let versions = descriptor.versions.iter().map(|v| (v.name.clone(), v.schema.clone()));
            let versions: Vec<(Str, TypedSchema)> = versions.filter(|(_, s)| defaulting.concerns(&s.root)).collect();
            if versions.is_empty() {
                continue;
            }
            let fill = move |version: &str, object: &mut Value| {
                if let Some((_, schema)) = versions.iter().find(|(name, _)| name == version) {
                    BUILTIN.defaulting.fill(&schema.root, object);
                }
            };
            resources.insert((descriptor.group.clone(), descriptor.plural.clone()), Box::new(fill));
        }
        Builtin { defaulting, resources }
    }
}

/// A text member, or `""`.
fn text<'a>(map: &'a Map, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Whether a Go pointer, slice or map would be nil.
fn is_absent(map: &Map, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_null)
}

/// Whether a Go value would be zero, or have no elements.
fn is_zero(map: &Map, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_empty)
}

/// Sets a Go pointer that is nil.
fn set_absent(map: &mut Map, key: &str, value: impl Into<Value>) {
    if is_absent(map, key) {
        map.insert(key, value);
    }
}

fn object_mut<'a>(map: &'a mut Map, key: &str) -> Option<&'a mut Map> {
    map.get_mut(key)?.as_object_mut()
}

/// Drops annotations of an object, and with the last one the member that had them.
fn drop_annotations(object: &mut Map, names: &[&str]) {
    let Some(metadata) = object_mut(object, "metadata") else { return };
    let Some(annotations) = object_mut(metadata, "annotations") else { return };
    for name in names {
        annotations.remove(name);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// The objects of a list, where there is one.
fn elements_mut<'a>(map: &'a mut Map, key: &str) -> impl Iterator<Item = &'a mut Map> {
    let items = map.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
