//! Defaults by resource: what clients leave out of an object, filled in at the version they speak.
//!
//! Plain defaults stand in the catalogue (`= v`, `:= v`); `kubelith_schema::defaults` fills them in. Here are the
//! rules for what depends on other fields, each for a type, in files by concept. A few of them do what the reference
//! does while it converts between a version and its internal form; their comments name the upstream file. Some
//! hold only while a feature gate is on ([`SWITCHED`]).

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
use kubelith_meta::{Map, Str, Value};
use kubelith_schema::defaults::Rule;
use kubelith_schema::{Defaulting, TypedSchema};
use std::collections::HashMap;
use std::sync::Arc;

/// Fills in what a client left out of an object at the given version. Running it again changes nothing.
pub type DefaultFn = Arc<dyn Fn(&str, &mut Value) + Send + Sync>;

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

/// Rules that hold while a gate is on, and those in their place while it is off.
struct Switched {
    gate: &'static str,
    on: Rules,
    off: Rules,
}

const SWITCHED: [Switched; 3] = [
    Switched { gate: "MaxUnavailableStatefulSet", on: workloads::MAX_UNAVAILABLE, off: &[] },
    Switched { gate: "PodLevelResources", on: pods::WITH_RESOURCES, off: pods::WITHOUT_RESOURCES },
    Switched { gate: "VolumeLimitScaling", on: storage::LIMIT_SCALING, off: &[] },
];

/// The gates that defaults depend on.
pub fn gates() -> impl Iterator<Item = &'static str> {
    SWITCHED.iter().map(|switched| switched.gate)
}

/// The defaults of all built-in kinds. Making it takes well under a millisecond.
pub struct Defaults {
    #[cfg(test)]
    defaulting: Arc<Defaulting>,
    /// By group and plural; only those that have any defaults.
    resources: HashMap<(Str, Str), DefaultFn>,
}

impl Defaults {
    pub fn new(catalog: &'static Catalog, is_on: &dyn Fn(&str) -> bool) -> Defaults {
        let switched = SWITCHED.iter().flat_map(|rules| if is_on(rules.gate) { rules.on } else { rules.off });
        let rules = RULES.into_iter().flatten().chain(switched).copied();
        let defaulting = Arc::new(Defaulting::new(catalog.table.clone(), rules));
        let mut resources: HashMap<_, DefaultFn> = HashMap::new();
        for descriptor in &catalog.descriptors {
            let versions = descriptor.versions.iter().map(|v| (v.name.clone(), v.schema.clone()));
            let versions: Vec<(Str, TypedSchema)> = versions.filter(|(_, s)| defaulting.concerns(&s.root)).collect();
            if versions.is_empty() {
                continue;
            }
            let defaulting = defaulting.clone();
            let fill = move |version: &str, object: &mut Value| {
                if let Some((_, schema)) = versions.iter().find(|(name, _)| name == version) {
                    defaulting.fill(&schema.root, object);
                }
            };
            resources.insert((descriptor.group.clone(), descriptor.plural.clone()), Arc::new(fill));
        }
        Defaults {
            #[cfg(test)]
            defaulting,
            resources,
        }
    }

    /// The defaulting of a resource, if it has any.
    pub fn of(&self, group: &str, plural: &str) -> Option<DefaultFn> {
        self.resources.get(&(Str::from(group), Str::from(plural))).cloned()
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

/// With all features as they are by default.
#[cfg(test)]
static BUILTIN: std::sync::LazyLock<Defaults> = std::sync::LazyLock::new(|| {
    let features = kubelith_features::FeatureGates::default();
    Defaults::new(kubelith_catalog::builtin(), &|gate| features.enabled(gate))
});

#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
