//! Fields that exist only while a feature gate is on. With the gate off they are dropped from what clients write, unless the
//! stored object uses the feature already: nobody loses what they have by an unrelated change.

mod path;
mod table;

use kubelith_meta::Value;
use path::FieldPath;
use table::{Feature, Kept, Need, POD_FEATURES, POD_STATUS, features_of, pod_spec_of};

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
    kept: Kept,
    own: Option<fn(&mut Value)>,
    prune: usize,
}

impl Gated {
    pub fn of(group: &str, plural: &str, gates: Gates<'_>) -> Gated {
        let mut all = Vec::new();
        let mut add = |features: &[Feature], below: &[&str]| {
            let is_on = |feature: &&Feature| match feature.need {
                Need::All => feature.gates.iter().all(|gate| gates(gate)),
                Need::Any => feature.gates.iter().any(|gate| gates(gate)),
            };
            let off = features.iter().filter(|feature| !is_on(feature));
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

    /// Whether there was something to drop.
    pub fn drop_from(&self, object: &mut Value, old: Option<&Value>) -> bool {
        let mut done = false;
        for dropped in &self.0 {
            // Looking costs little, and what is shared with the stored object stays so.
            let is_there = |list: &[FieldPath], of: &Value| list.iter().any(|path| path.is_in(of));
            let is_meant = match &dropped.when[..] {
                [] => is_there(&dropped.fields, object),
                when => when.iter().any(|path| path.is_full_in(object)),
            };
            let stays = old.is_some_and(|old| match dropped.kept {
                Kept::IfUsed => is_there(dropped.keepers(), old),
                Kept::OnUpdate => true,
                Kept::Never => false,
            });
            if is_meant && !stays {
                // What is empty is as good as absent.
                done |= dropped.fields.iter().any(|path| path.is_full_in(object));
                dropped.drop_from(object);
            }
        }
        done
    }
}

impl Dropped {
    fn of(feature: &Feature, below: &[&str]) -> Dropped {
        let paths = |list: &[&str]| list.iter().flat_map(|text| FieldPath::all(below, text)).collect();
        Dropped {
            fields: paths(feature.fields),
            when: paths(feature.when),
            kept_by: paths(feature.kept_by),
            kept: feature.kept,
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
