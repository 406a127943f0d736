//! What all definitions say, as far as one must know of the others: names, and what discovery shows.

use super::conditions::Taken;
use crate::definition::{Definition, Names};
use crate::serving::descriptor;
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_schema::Descriptor;
use kubelith_store::cache::CachedObject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub struct Index {
    /// By the definition's name. No other lock is taken while this one is held.
    known: Mutex<BTreeMap<Str, Known>>,
}

/// One definition.
#[derive(Clone)]
pub struct Known {
    pub group: Str,
    pub accepted: Names,
    /// Versions that are served, be it established or not.
    pub served: Vec<Str>,
    /// What is published of it once it is established.
    pub published: Option<Arc<Descriptor>>,
    mark: Mark,
    /// The definition itself, for what is written from it on demand.
    pub object: Arc<CachedObject>,
    /// With the status that it is about to get.
    settling: Option<Arc<Value>>,
}

/// Tells whether what is published would differ.
#[derive(Clone, PartialEq, Eq)]
struct Mark {
    uid: Str,
    generation: i64,
    established: bool,
    terminating: bool,
}

/// The group versions that a change concerns.
pub type Touched = BTreeSet<GroupVersion>;

impl Known {
    fn read(definition: Definition<'_>, object: &Arc<CachedObject>) -> Known {
        let mark = Mark {
            uid: definition.uid().into(),
            generation: definition.generation(),
            established: definition.is("Established"),
            terminating: definition.is("Terminating"),
        };
        Known {
            group: definition.group().into(),
            accepted: definition.accepted_names(),
            served: definition.versions().filter(|v| v.is_served()).map(|v| v.name().into()).collect(),
            published: mark.established.then(|| descriptor::outline(definition)),
            mark,
            object: object.clone(),
            settling: None,
        }
    }

    fn versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.served.iter().map(|v| GroupVersion::new(self.group.clone(), v.clone()))
    }
}

impl Index {
    /// Takes in a definition. Answers the group versions whose documents change.
    pub fn put(&self, definition: Definition<'_>, object: &Arc<CachedObject>) -> Touched {
        self.insert(definition, Known::read(definition, object))
    }

    /// Takes in a definition that is about to get another status.
    pub fn settle(&self, wanted: &Arc<Value>, object: &Arc<CachedObject>) -> Touched {
        let definition = Definition(wanted);
        let known = Known { settling: Some(wanted.clone()), ..Known::read(definition, object) };
        self.insert(definition, known)
    }

    fn insert(&self, definition: Definition<'_>, new: Known) -> Touched {
        let mut known = self.known.lock().expect("no panic under this lock");
        let mut touched = Touched::new();
        match known.get(definition.name()) {
            Some(old) if old.mark == new.mark && old.accepted == new.accepted => {}
            old => touched.extend(old.into_iter().flat_map(Known::versions).chain(new.versions())),
        }
        known.insert(definition.name().into(), new);
        touched
    }

    pub fn remove(&self, name: &str) -> Touched {
        let removed = self.known.lock().expect("no panic under this lock").remove(name);
        removed.iter().flat_map(Known::versions).collect()
    }

    /// The names that the other definitions of a group have.
    pub fn taken(&self, group: &str, except: &str) -> Taken {
        let mut taken = Taken::default();
        let known = self.known.lock().expect("no panic under this lock");
        for (_, other) in known.iter().filter(|(name, k)| *name != except && k.group == group) {
            taken.add(&other.accepted);
        }
        taken
    }

    /// A definition with the status that is being written for it.
    pub fn settling(&self, object: &CachedObject) -> Option<Arc<Value>> {
        let known = self.known.lock().expect("no panic under this lock");
        let known = known.get(&*object.key).filter(|k| k.object.revision == object.revision)?;
        known.settling.clone()
    }

    pub fn all(&self) -> Vec<Known> {
        self.known.lock().expect("no panic under this lock").values().cloned().collect()
    }

    /// All group versions that some definition serves.
    pub fn group_versions(&self) -> BTreeSet<GroupVersion> {
        self.known.lock().expect("no panic under this lock").values().flat_map(Known::versions).collect()
    }
}
