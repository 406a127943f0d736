//! What an update or an apply does to ownership.

use super::versions::in_version;
use super::{Conflicts, ManagerId, Operation, Owner, Owners, Versions};
use crate::fieldset::{Filter, Set, values};
use crate::typed::{Comparison, Type};
use kubelith_meta::{Str, Value};

/// Computes ownership for requests in one version.
#[derive(Clone, Copy)]
pub struct Updater<'a> {
    pub versions: &'a dyn Versions,
    /// The `apiVersion` of the request, and of all objects handed in.
    pub version: &'a str,
    pub ty: Type<'a>,
    /// By `apiVersion`: fields that this request cannot set, for the strategy resets them.
    pub reset: &'a [(Str, Filter)],
}

/// Whether to take fields from their owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    #[error("{0}")]
    Conflicts(Conflicts),
    #[error("{0}")]
    Failed(String),
}

/// The fields that an applier wants.
#[derive(Debug, Clone)]
pub enum Wanted {
    Set(Set),
    /// As they will be written, without those that nobody owns or that cannot be set.
    Written(String),
}

/// The outcome of an apply.
#[derive(Debug, Clone)]
pub enum Applied {
    /// The object is as it was; ownership may have changed.
    Unchanged,
    Changed(Value),
}

/// How the object changed, per version of its managers.
struct Comparisons<'u, 'a> {
    updater: &'u Updater<'a>,
    old: &'u Value,
    new: &'u Value,
    known: Vec<(Str, Option<Comparison>)>,
}

impl<'a> Updater<'a> {
    pub(crate) fn filter(&self, version: &str) -> Option<&'a Filter> {
        self.reset.iter().find(|(v, _)| v == version).map(|(_, f)| f)
    }

    pub(super) fn type_in(&self, version: &str) -> Option<Type<'a>> {
        if version == self.version { Some(self.ty) } else { self.versions.type_in(version) }
    }

    /// Makes `manager` the owner of all fields that changed, but for those that are nobody's. Answers it as it is then, if
    /// any changed.
    pub fn update<'o>(
        &self,
        live: &Value,
        new: &Value,
        owners: &'o mut Owners,
        manager: ManagerId,
        nobodys: &Set,
    ) -> Result<Option<&'o mut Owner>, UpdateError> {
        self.reconcile(owners);
        let mut changes = self.disown(live, new, None, owners, Some(&manager), Force::Yes)?;
        let removed = std::mem::take(&mut changes.removed);
        let mut changed = changes.changed();
        changed.remove(nobodys);
        let new_owner = || Owner::new(Str::from(self.version), Operation::Update, Set::new());
        let mut owner = owners.remove(&manager).unwrap_or_else(new_owner);
        owner.lose(&removed);
        let has_changed = !changed.is_empty();
        owner.gain(changed);
        if owner.is_empty() {
            return Ok(None);
        }
        let owner = owners.entry(manager).or_insert(owner);
        Ok(has_changed.then_some(owner))
    }

    /// Merges `config`, whose fields are `wanted`, into `live`, prunes what `manager` no longer wants, and makes it own what
    /// it wants.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        wanted: Wanted,
        owners: &mut Owners,
        manager: &ManagerId,
        force: Force,
    ) -> Result<Applied, UpdateError> {
        self.reconcile(owners);
        let merge_failed = |e| UpdateError::Failed(format!("failed to merge config: {e}"));
        let overlay = self.ty.overlay(live, config).map_err(merge_failed)?;
        let pruned = match wanted {
            Wanted::Written(fields) if self.owns_just(owners.get(manager), &fields) => None,
            Wanted::Written(_) => self.renew(owners, manager, self.ty.field_set(config)),
            Wanted::Set(set) => self.renew(owners, manager, set),
        };
        if overlay.is_empty() && pruned.is_none() {
            owners.retain(|_, owner| !owner.is_empty());
            return Ok(Applied::Unchanged);
        }
        let merged = self.ty.merge(live, config).map_err(merge_failed)?;
        let (new, changes) = match pruned {
            Some(last) => (self.prune(merged, owners, last)?, None),
            None => (merged, Some(overlay.changes)),
        };
        self.disown(live, &new, changes, owners, Some(manager), force)?;
        Ok(if values::equal(live, &new) { Applied::Unchanged } else { Applied::Changed(new) })
    }

    /// Whether a manager has these fields in this version, and no others.
    fn owns_just(&self, owner: Option<&Owner>, fields: &str) -> bool {
        owner.is_some_and(|o| o.version == self.version && o.fields().text().is_some_and(|text| **text == *fields))
    }

    /// Makes `manager` the owner of `set`, as far as it can be set. Answers what it owned before, if something of that may
    /// have to go.
    fn renew(&self, owners: &mut Owners, manager: &ManagerId, mut set: Set) -> Option<Owner> {
        if let Some(filter) = self.filter(self.version) {
            filter.apply(&mut set);
        }
        let last = owners.remove(manager);
        let may_prune = last.as_ref().is_some_and(|last| self.may_prune(last, &set));
        let (last, pruned) = if may_prune { (None, last) } else { (last, None) };
        let time = pruned.as_ref().and_then(|p| p.time.clone());
        let mut owner = Owner::renewed(last, self.version, set);
        owner.time = owner.time.or(time);
        owners.insert(manager.clone(), owner);
        pruned
    }

    /// Brings ownership in line with the types as they are now, and forgets versions that are gone.
    fn reconcile(&self, owners: &mut Owners) {
        owners.retain(|_, owner| {
            let Some(ty) = self.type_in(&owner.version) else { return false };
            if let Some(set) = ty.reconcile_owned(owner.fields(), self.versions.are_decoded_by_type()) {
                owner.replace_set(set);
            }
            true
        });
    }

    /// Takes the fields that changed from `old` to `new` away from everybody but `manager`. `changes` are those in the
    /// version of the request, if they are known.
    fn disown(
        &self,
        old: &Value,
        new: &Value,
        changes: Option<Comparison>,
        owners: &mut Owners,
        manager: Option<&ManagerId>,
        force: Force,
    ) -> Result<Comparison, UpdateError> {
        let mut comparisons = Comparisons { updater: self, old, new, known: Vec::new() };
        match changes {
            Some(changes) => comparisons.learn(self.version, Some(changes)),
            None => drop(comparisons.in_version(self.version)?),
        }
        let mut gone = Vec::new();
        let mut losses: Vec<(ManagerId, Set, Set)> = Vec::new();
        for (id, owner) in owners.iter().filter(|(id, _)| Some(*id) != manager) {
            let Some(comparison) = comparisons.in_version(&owner.version)? else {
                gone.push(id.clone());
                continue;
            };
            let conflict = owner
                .fields()
                .intersection(&comparison.modified)
                .union(&owner.fields().intersection(&comparison.added));
            if !conflict.is_empty() || !comparison.removed.is_empty() {
                losses.push((id.clone(), conflict, comparison.removed.clone()));
            }
        }
        if force == Force::No {
            let conflicts = Conflicts::of(losses.iter().filter(|l| !l.1.is_empty()).map(|(id, set, _)| (id, set)));
            if !conflicts.0.is_empty() {
                return Err(UpdateError::Conflicts(conflicts));
            }
        }
        gone.iter().for_each(|id| drop(owners.remove(id)));
        for (id, conflict, removed) in losses {
            if let Some(owner) = owners.get_mut(&id) {
                owner.lose(&conflict);
                owner.lose(&removed);
            }
        }
        owners.retain(|_, owner| !owner.is_empty());
        Ok(comparisons.known.swap_remove(0).1.unwrap_or_default())
    }
}

impl Comparisons<'_, '_> {
    /// The changes in terms of `version`; `None` if there is no such version.
    fn in_version(&mut self, version: &str) -> Result<Option<&Comparison>, UpdateError> {
        let at = match self.known.iter().position(|(v, _)| v == version) {
            Some(at) => at,
            None => {
                let comparison = self.compute(version)?;
                self.learn(version, comparison);
                self.known.len() - 1
            }
        };
        Ok(self.known[at].1.as_ref())
    }

    fn learn(&mut self, version: &str, mut comparison: Option<Comparison>) {
        if let (Some(comparison), Some(filter)) = (&mut comparison, self.updater.filter(version)) {
            comparison.filter(filter);
        }
        self.known.push((Str::from(version), comparison));
    }

    fn compute(&self, version: &str) -> Result<Option<Comparison>, UpdateError> {
        let Updater { versions, version: own, .. } = *self.updater;
        let wrap = |what: &str, e: UpdateError| UpdateError::Failed(format!("failed to convert {what} object: {e}"));
        let ty = self.updater.type_in(version);
        let old = in_version(versions, self.old, own, version).map_err(|e| wrap("old", e))?;
        let new = in_version(versions, self.new, own, version).map_err(|e| wrap("new", e))?;
        let (Some(ty), Some(old), Some(new)) = (ty, old, new) else { return Ok(None) };
        let compare_failed = |e| UpdateError::Failed(format!("failed to compare objects: {e}"));
        ty.compare(&old, &new).map(Some).map_err(compare_failed)
    }
}
