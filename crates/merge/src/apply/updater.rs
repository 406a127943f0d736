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
    pub(super) fn filter(&self, version: &str) -> Option<&'a Filter> {
        self.reset.iter().find(|(v, _)| v == version).map(|(_, f)| f)
    }

    /// Takes changed fields from their owners and returns what the updater owns now, beside what it owned before.
    pub fn update(&self, live: &Value, new: &Value, owners: &mut Owners) -> Result<Set, UpdateError> {
        self.reconcile(live, owners)?;
        let comparison = self.disown(live, new, owners, None, Force::Yes)?;
        Ok(comparison.changed())
    }

    /// Merges `config` into `live`, prunes what `manager` no longer wants, and makes it own what it wants.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        owners: &mut Owners,
        manager: &ManagerId,
        force: Force,
    ) -> Result<Applied, UpdateError> {
        self.reconcile(live, owners)?;
        let merged =
            self.ty.merge(live, config).map_err(|e| UpdateError::Failed(format!("failed to merge config: {e}")))?;
        let mut set = self.ty.field_set(config);
        if let Some(filter) = self.filter(self.version) {
            set = filter.apply(&set);
        }
        let last = owners.remove(manager);
        let mut owner = Owner::new(Str::from(self.version), Operation::Apply, set);
        owner.time = last.as_ref().and_then(|l| l.time.clone());
        owners.insert(manager.clone(), owner);
        let new = self.prune(merged, owners, manager, last)?;
        self.disown(live, &new, owners, Some(manager), force)?;
        Ok(if values::equal(live, &new) { Applied::Unchanged } else { Applied::Changed(new) })
    }

    /// Brings ownership in line with the types as they are now, and forgets versions that are gone.
    fn reconcile(&self, live: &Value, owners: &mut Owners) -> Result<(), UpdateError> {
        let mut checked: Vec<(Str, bool)> = vec![(Str::from(self.version), true)];
        for owner in owners.values() {
            if !checked.iter().any(|(v, _)| *v == owner.version) {
                let exists = in_version(self.versions, live, self.version, &owner.version)?.is_some();
                checked.push((owner.version.clone(), exists));
            }
        }
        owners.retain(|_, owner| {
            let exists = checked.iter().any(|(v, exists)| *v == owner.version && *exists);
            let ty = if owner.version == self.version { Some(self.ty) } else { self.versions.type_in(&owner.version) };
            if let Some(set) = ty.filter(|_| exists).and_then(|ty| ty.reconcile(&owner.set)) {
                owner.replace_set(set);
            }
            exists
        });
        Ok(())
    }

    /// Takes the fields that changed from `old` to `new` away from everybody but `manager`.
    fn disown(
        &self,
        old: &Value,
        new: &Value,
        owners: &mut Owners,
        manager: Option<&ManagerId>,
        force: Force,
    ) -> Result<Comparison, UpdateError> {
        let mut comparisons = Comparisons { updater: self, old, new, known: Vec::new() };
        comparisons.in_version(self.version)?;
        let mut gone = Vec::new();
        let mut losses: Vec<(ManagerId, Set, Set)> = Vec::new();
        for (id, owner) in owners.iter().filter(|(id, _)| Some(*id) != manager) {
            let Some(comparison) = comparisons.in_version(&owner.version)? else {
                gone.push(id.clone());
                continue;
            };
            let conflict =
                owner.set.intersection(&comparison.modified).union(&owner.set.intersection(&comparison.added));
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
        owners.retain(|_, owner| !owner.set.is_empty());
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
                self.known.push((Str::from(version), comparison));
                self.known.len() - 1
            }
        };
        Ok(self.known[at].1.as_ref())
    }

    fn compute(&self, version: &str) -> Result<Option<Comparison>, UpdateError> {
        let Updater { versions, version: own, ty, .. } = *self.updater;
        let wrap = |what: &str, e: UpdateError| UpdateError::Failed(format!("failed to convert {what} object: {e}"));
        let ty = if version == own { Some(ty) } else { versions.type_in(version) };
        let old = in_version(versions, self.old, own, version).map_err(|e| wrap("old", e))?;
        let new = in_version(versions, self.new, own, version).map_err(|e| wrap("new", e))?;
        let (Some(ty), Some(old), Some(new)) = (ty, old, new) else { return Ok(None) };
        let mut comparison =
            ty.compare(&old, &new).map_err(|e| UpdateError::Failed(format!("failed to compare objects: {e}")))?;
        if let Some(filter) = self.updater.filter(version) {
            comparison.filter(filter);
        }
        Ok(Some(comparison))
    }
}
