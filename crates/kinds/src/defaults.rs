//! Defaults by resource: what clients leave out of an object, filled in at the version they speak.
//!
//! Plain defaults stand in the catalogue (`= v`, `:= v`); `kubelith_schema::defaults` fills them in. What depends on other fields is
//! said by kinds, each for a type. A few of them do what the reference does while it converts between a version and its internal form;
//! their comments name the upstream file. Some hold only while a feature gate is on.

use crate::Kinds;
use kubelith_catalog::Catalog;
use kubelith_meta::{Str, Value};
use kubelith_rules::gated::Gates;
use kubelith_schema::{Defaulting, TypedSchema};
use std::collections::HashMap;
use std::sync::Arc;

/// Fills in what a client left out of an object at the given version. Running it again changes nothing.
pub type DefaultFn = Arc<dyn Fn(&str, &mut Value) + Send + Sync>;

/// The defaults of all built-in kinds. Making it takes well under a millisecond.
pub struct Defaults {
    #[cfg(test)]
    defaulting: Arc<Defaulting>,
    /// By group and plural; only those that have any defaults.
    resources: HashMap<(Str, Str), DefaultFn>,
}

impl Defaults {
    pub fn new(kinds: Kinds, catalog: &'static Catalog, gates: Gates<'_>) -> Defaults {
        let switched = kinds.iter().flat_map(|kind| kind.switched);
        let switched = switched.flat_map(|rules| if gates(rules.gate) { rules.on } else { rules.off });
        let rules = kinds.iter().flat_map(|kind| kind.defaults).chain(switched).copied();
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

    /// Which of the gates are on that defaults depend on. Where those are the same, so are all defaults.
    pub fn switches(kinds: Kinds, gates: Gates<'_>) -> Vec<bool> {
        kinds.iter().flat_map(|kind| kind.switched).map(|rules| gates(rules.gate)).collect()
    }

    /// The defaulting of a resource, if it has any.
    pub fn of(&self, group: &str, plural: &str) -> Option<DefaultFn> {
        self.resources.get(&(Str::from(group), Str::from(plural))).cloned()
    }
}

/// With all features as they are by default.
#[cfg(test)]
static BUILTIN: std::sync::LazyLock<Defaults> = std::sync::LazyLock::new(|| {
    let features = kubelith_features::FeatureGates::default();
    Defaults::new(crate::BUILTIN, kubelith_catalog::builtin(), &|gate| features.enabled(gate))
});

#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
