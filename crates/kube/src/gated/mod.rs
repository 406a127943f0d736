//! Fields that exist only while a feature gate is on. With the gate off they are dropped from what clients write, unless the
//! stored object uses the feature already: nobody loses what they have by an unrelated change.

mod path;
mod table;

use kubelith_meta::Value;
use path::FieldPath;
use table::{Feature, POD_FEATURES, POD_STATUS, features_of, pod_spec_of};

/// Whether a gate is on.
pub type Gates<'a> = &'a dyn Fn(&str) -> bool;

/// The features of one kind whose gates are off, ready to be dropped. Most kinds have none.
pub struct Gated(Box<[Dropped]>);

struct Dropped {
    /// What is dropped.
    fields: Vec<FieldPath>,
    /// What must be there for that to happen, if it is not the fields themselves.
    when: Vec<FieldPath>,
    /// What of the stored object keeps the fields, if it is not the fields themselves.
    kept_by: Vec<FieldPath>,
    own: Option<fn(&mut Value)>,
    prune: usize,
}

impl Gated {
    pub fn of(group: &str, plural: &str, gates: Gates<'_>) -> Gated {
        let mut all = Vec::new();
        let mut add = |features: &[Feature], below: &[&str]| {
            let off = features.iter().filter(|feature| !feature.gates.iter().all(|gate| gates(gate)));
            all.extend(off.map(|feature| Dropped::of(feature, below)));
        };
        if let Some(spec) = pod_spec_of(group, plural) {
            add(POD_FEATURES, spec);
        }
        if group.is_empty() && plural == "pods" {
            add(POD_STATUS, &["status"]);
        }
        add(features_of(group, plural), &[]);
        Gated(all.into())
    }

    pub fn drop_from(&self, object: &mut Value, old: Option<&Value>) {
        for dropped in &self.0 {
            // Looking costs little, and what is shared with the stored object stays so.
            let is_there = |list: &[FieldPath], of: &Value| list.iter().any(|path| path.is_in(of));
            let is_meant = match &dropped.when[..] {
                [] => is_there(&dropped.fields, object),
                when => when.iter().any(|path| path.is_full_in(object)),
            };
            if is_meant && !old.is_some_and(|old| is_there(dropped.keepers(), old)) {
                dropped.drop_from(object);
            }
        }
    }
}

impl Dropped {
    fn of(feature: &Feature, below: &[&str]) -> Dropped {
        let paths = |list: &[&str]| list.iter().flat_map(|text| FieldPath::all(below, text)).collect();
        Dropped {
            fields: paths(feature.fields),
            when: paths(feature.when),
            kept_by: paths(feature.kept_by),
            own: feature.own,
            prune: feature.prune,
        }
    }

    fn keepers(&self) -> &[FieldPath] {
        if self.kept_by.is_empty() { &self.fields } else { &self.kept_by }
    }

    fn drop_from(&self, object: &mut Value) {
        for field in &self.fields {
            match self.own {
                Some(own) => field.each(object, own),
                None => field.remove(object, self.prune),
            }
        }
    }
}

#[cfg(test)]
mod tests;
