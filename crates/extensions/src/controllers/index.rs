//! What all definitions say, as far as one must know of the others: names, and what discovery shows.

use super::conditions::Taken;
use crate::definition::{Definition, Names, group_of};
use crate::metrics::Reason;
use crate::serving::descriptor;
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_schema::Descriptor;
use kubelith_store::cache::CachedObject;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// For the status of a definition to be written.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Index {
    /// By group, then by the definition's name: what changes with one definition is looked for in its group only. No
    /// lock but that of `waiting` is taken while this one is held.
    groups: Mutex<HashMap<Str, BTreeMap<Str, Known>>>,
    /// Definitions that were refused a name, and whose group had one given up since.
    waiting: Mutex<BTreeSet<Str>>,
    /// Rings when a status was written, or could not be.
    written: Notify,
}

/// One definition.
#[derive(Clone)]
pub struct Known {
    group: Str,
    accepted: Names,
    /// It did not get all the names that it asked for.
    refused: bool,
    /// Versions that are served, be it established or not.
    served: Vec<Str>,
    /// What is published of it once it is established.
    pub published: Option<Arc<Descriptor>>,
    mark: Mark,
    /// The definition itself, for what is written from it on demand.
    pub object: Arc<CachedObject>,
    /// With the status that it is about to get.
    settling: Option<Arc<Value>>,
    /// That status is on its way to the store.
    is_writing: bool,
    /// The revision at which it got that status.
    settled: Option<i64>,
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
pub struct Touched {
    pub versions: BTreeSet<GroupVersion>,
    pub reason: Reason,
}

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
            refused: definition.accepted_names() != definition.names(),
            served: definition.versions().filter(|v| v.is_served()).map(|v| v.name().into()).collect(),
            published: mark.established.then(|| descriptor::outline(definition)),
            mark,
            object: object.clone(),
            settling: None,
            is_writing: false,
            settled: None,
        }
    }

    fn versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.served.iter().map(|v| GroupVersion::new(self.group.clone(), v.clone()))
    }
}

impl Index {
    fn groups(&self) -> MutexGuard<'_, HashMap<Str, BTreeMap<Str, Known>>> {
        self.groups.lock().expect("no panic under this lock")
    }

    /// Takes in a definition. Answers the group versions whose documents change.
    pub fn put(&self, definition: Definition<'_>, object: &Arc<CachedObject>) -> Touched {
        self.insert(definition, Known::read(definition, object))
    }

    /// Takes in a definition that is about to get another status.
    pub fn settle(&self, wanted: &Arc<Value>, object: &Arc<CachedObject>) -> Touched {
        let definition = Definition(wanted);
        let read = Known::read(definition, object);
        let known = Known { settling: Some(wanted.clone()), is_writing: true, ..read };
        self.insert(definition, known)
    }

    fn insert(&self, definition: Definition<'_>, new: Known) -> Touched {
        let mut groups = self.groups();
        let known = groups.entry(new.group.clone()).or_default();
        let old = known.get(definition.name());
        let reason = if old.is_some_and(|old| old.published.is_some()) { Reason::Update } else { Reason::Add };
        let versions = match old {
            Some(old) if old.mark == new.mark && old.accepted == new.accepted => BTreeSet::new(),
            old => old.into_iter().flat_map(Known::versions).chain(new.versions()).collect(),
        };
        let accepted = new.accepted.clone();
        let old = known.insert(definition.name().into(), new);
        if old.is_some_and(|old| old.accepted != accepted) {
            self.given_up(known);
        }
        Touched { versions, reason }
    }

    /// The status that the definition was to get is written, or could not be.
    pub fn written(&self, name: &str) {
        if let Some(known) = of_name(&mut self.groups(), name) {
            known.is_writing = false;
        }
        self.written.notify_waiters();
    }

    /// Whether a status for this state of the definition is on its way.
    pub fn is_writing(&self, object: &CachedObject) -> bool {
        let mut groups = self.groups();
        of_name(&mut groups, &object.key).is_some_and(|k| k.is_writing && k.object.revision == object.revision)
    }

    /// Waits until a status that is on its way has been written: whoever is served may ask for it next.
    pub async fn until_written(&self, object: &CachedObject) {
        let written = async {
            loop {
                let told = self.written.notified();
                tokio::pin!(told);
                told.as_mut().enable();
                if !self.is_writing(object) {
                    return;
                }
                told.await;
            }
        };
        // A store that hangs is not a reason to hang here as well.
        let _ = tokio::time::timeout(PATIENCE, written).await;
    }

    /// The status that the definition was to get is written, at this revision.
    pub fn settled(&self, definition: Definition<'_>, revision: i64) {
        let mut groups = self.groups();
        let known = groups.get_mut(definition.group()).and_then(|known| known.get_mut(definition.name()));
        if let Some(known) = known {
            known.settled = Some(revision);
        }
    }

    /// Whether this is a definition as we left it, so that nothing is to be read from it.
    pub fn is_settled(&self, object: &Arc<CachedObject>) -> bool {
        let mut groups = self.groups();
        let known = of_name(&mut groups, &object.key).filter(|k| k.settled == Some(object.revision));
        let Some(known) = known else { return false };
        known.object = object.clone();
        known.settling = None;
        true
    }

    pub fn remove(&self, name: &str) -> Touched {
        let mut groups = self.groups();
        let removed = groups.values_mut().find_map(|known| {
            let removed = known.remove(name)?;
            self.given_up(known);
            Some(removed)
        });
        groups.retain(|_, known| !known.is_empty());
        Touched { versions: removed.iter().flat_map(Known::versions).collect(), reason: Reason::Remove }
    }

    /// A name of this group may be free again.
    fn given_up(&self, group: &BTreeMap<Str, Known>) {
        let refused = group.iter().filter(|(_, known)| known.refused).map(|(name, _)| name.clone());
        self.waiting.lock().expect("no panic under this lock").extend(refused);
    }

    /// The definitions that may get a name now which they were refused; each is told once.
    pub fn take_waiting(&self) -> Vec<Str> {
        std::mem::take(&mut *self.waiting.lock().expect("no panic under this lock")).into_iter().collect()
    }

    /// The names that the other definitions of a group have.
    pub fn taken(&self, group: &str, except: &str) -> Taken {
        let mut taken = Taken::default();
        for (_, other) in self.groups().get(group).into_iter().flatten().filter(|(name, _)| *name != except) {
            taken.add(&other.accepted);
        }
        taken
    }

    pub fn knows(&self, name: &str) -> bool {
        of_name(&mut self.groups(), name).is_some()
    }

    /// A definition with the status that is being written for it.
    pub fn settling(&self, object: &CachedObject) -> Option<Arc<Value>> {
        let mut groups = self.groups();
        let known = of_name(&mut groups, &object.key).filter(|k| k.object.revision == object.revision)?;
        known.settling.clone()
    }

    /// The definitions of a group, by name.
    pub fn group(&self, group: &str) -> Vec<Known> {
        self.groups().get(group).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }
}

fn of_name<'a>(groups: &'a mut HashMap<Str, BTreeMap<Str, Known>>, name: &str) -> Option<&'a mut Known> {
    groups.get_mut(group_of(name))?.get_mut(name)
}
