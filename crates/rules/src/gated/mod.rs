//! Fields that exist only while a feature gate is on. With the gate off they are dropped from what clients write, unless the
//! stored object uses the feature already: nobody loses what they have by an unrelated change.

mod path;

use crate::Kind;
use crate::gated::path::FieldPath;
use kubelith_meta::Value;
use std::sync::OnceLock;

/// Whether a gate is on.
pub type Gates<'a> = &'a dyn Fn(&str) -> bool;

/// Features, and the path below which their fields are.
pub type Below = (&'static [&'static str], &'static [Feature]);

/// The features of one kind whose gates are off, ready to be dropped. Most kinds have none.
pub struct Gated {
    off: Vec<(&'static [&'static str], &'static Feature)>,
    /// Read from them when the first object comes.
    dropped: OnceLock<Box<[Dropped]>>,
}

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
    pub fn of(kind: &Kind, gates: Gates<'_>) -> Gated {
        let is_on = |feature: &Feature| match feature.need {
            Need::All => feature.gates.iter().all(|gate| gates(gate)),
            Need::Any => feature.gates.iter().any(|gate| gates(gate)),
        };
        let all = kind.features.iter().flat_map(|(below, features)| features.iter().map(move |f| (*below, f)));
        Gated { off: all.filter(|(_, feature)| !is_on(feature)).collect(), dropped: OnceLock::new() }
    }

    fn dropped(&self) -> &[Dropped] {
        self.dropped.get_or_init(|| self.off.iter().map(|(below, feature)| Dropped::of(feature, below)).collect())
    }

    /// All paths that are looked at, for each feature.
    #[cfg(any(test, feature = "testing"))]
    pub fn paths(&self) -> impl Iterator<Item = impl Iterator<Item = &FieldPath>> {
        self.dropped().iter().map(|dropped| dropped.fields.iter().chain(&dropped.when).chain(&dropped.kept_by))
    }

    /// Whether there was something to drop.
    pub fn drop_from(&self, object: &mut Value, old: Option<&Value>) -> bool {
        let mut done = false;
        for dropped in self.dropped() {
            if old.is_some_and(|old| dropped.is_unchanged(object, old)) {
                debug_assert!(dropped.fields.iter().all(|f| !f.is_in(object) || old.is_some_and(|old| f.is_in(old))));
                continue;
            }
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

    /// Whether fields that stay where the stored object has them are in parts of it that nobody changed.
    fn is_unchanged(&self, object: &Value, old: &Value) -> bool {
        self.kept == Kept::IfUsed
            && self.kept_by.is_empty()
            && self.fields.iter().all(|field| field.is_shared(object, old))
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

/// Fields that go together.
#[derive(Clone, Copy)]
pub struct Feature {
    pub gates: &'static [&'static str],
    /// How many of the gates must be on.
    pub need: Need,
    pub fields: &'static [&'static str],
    /// If given: the fields are dropped where one of these is set.
    pub when: &'static [&'static str],
    /// If given: the fields stay where the stored object has one of these.
    pub kept_by: &'static [&'static str],
    pub kept: Kept,
    /// If given: what is done with the values at `fields` instead of removing them.
    pub own: Option<fn(&mut Value)>,
    /// So many objects around a dropped field go with it if they hold nothing else.
    pub prune: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    All,
    Any,
}

/// When fields stay though their gate is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Where the stored object uses them.
    IfUsed,
    /// On every update.
    OnUpdate,
    Never,
}

pub const fn feature(gates: &'static [&'static str], fields: &'static [&'static str]) -> Feature {
    let (need, kept) = (Need::All, Kept::IfUsed);
    Feature { gates, need, fields, when: &[], kept_by: &[], kept, own: None, prune: 0 }
}

impl Feature {
    pub const fn kept_by(mut self, fields: &'static [&'static str]) -> Feature {
        self.kept_by = fields;
        self
    }

    pub const fn kept(mut self, kept: Kept) -> Feature {
        self.kept = kept;
        self
    }

    pub const fn any(mut self) -> Feature {
        self.need = Need::Any;
        self
    }

    pub const fn when(mut self, fields: &'static [&'static str]) -> Feature {
        self.when = fields;
        self
    }

    pub const fn pruned(mut self, levels: usize) -> Feature {
        self.prune = levels;
        self
    }

    pub const fn by(mut self, own: fn(&mut Value)) -> Feature {
        self.own = Some(own);
        self
    }
}
