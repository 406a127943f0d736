//! Removal by omission.
//!
//! An item goes if the applier applied it last time, does not apply it now, and nobody else owns it. The steps: take out
//! everything that was applied last; put back what anybody owns now, in whatever version; and put back what went only
//! because something around it did (defaults in a list element, say) but was never the applier's.

use super::versions::in_version;
use super::{ManagerId, Owner, Owners, UpdateError, Updater};
use crate::fieldset::Set;
use kubelith_meta::{Str, Value};

impl Updater<'_> {
    /// `merged` without what `manager` had applied as `last` and owns no longer.
    pub(super) fn prune(
        &self,
        merged: Value,
        owners: &Owners,
        manager: &ManagerId,
        last: Option<Owner>,
    ) -> Result<Value, UpdateError> {
        let Some(last) = last.filter(|l| !l.set.is_empty()) else { return Ok(merged) };
        // The usual case: all that was applied is applied again. Then everything on the way to it is owned, too, and
        // nothing can go.
        if last.version == self.version && owners.get(manager).is_some_and(|now| last.set.is_subset(&now.set)) {
            return Ok(merged);
        }
        let failed = |what: &str, e: UpdateError| UpdateError::Failed(format!("failed to prune fields: {what}: {e}"));
        let base = in_version(self.versions, &merged, self.version, &last.version)
            .map_err(|e| failed("failed to convert merged object to last applied version", e))?;
        let (Some(base), Some(ty)) = (base, self.type_in(&last.version)) else { return Ok(merged) };
        let base = base.into_owned();

        let last_set = ty.with_named_fields(&last.set);
        let mut pruned = base.clone();
        ty.remove_items(&mut pruned, &last_set);
        let (pruned, version) = self
            .add_back_owned(&base, pruned, &last.version, owners)
            .map_err(|e| failed("failed add back owned items", e))?;

        let back = in_version(self.versions, &pruned, &version, &last.version).map_err(|e| {
            failed("failed add back dangling items: failed to convert pruned object to last applied version", e)
        })?;
        let mut result = base.clone();
        if let Some(pruned) = back {
            let kept = ty.with_named_fields(&ty.field_set(&pruned));
            let all = ty.with_named_fields(&ty.field_set(&base));
            ty.remove_items(&mut result, &all.difference(&kept).intersection(&last_set));
        }
        match in_version(self.versions, &result, &last.version, self.version).map_err(|e| failed("", e))? {
            Some(result) => Ok(result.into_owned()),
            None => Err(UpdateError::Failed(format!("no corresponding type for {}", self.version))),
        }
    }

    fn type_in(&self, version: &str) -> Option<crate::typed::Type<'_>> {
        if version == self.version { Some(self.ty) } else { self.versions.type_in(version) }
    }

    /// `pruned` with every item of `merged` that anybody owns, and the version that it ends up in. The version that was
    /// pruned in comes first, for other versions may not convert without what was removed.
    fn add_back_owned(
        &self,
        merged: &Value,
        mut pruned: Value,
        pruned_version: &Str,
        owners: &Owners,
    ) -> Result<(Value, Str), UpdateError> {
        let mut owned: Vec<(Str, Set)> = vec![(pruned_version.clone(), Set::new())];
        for owner in owners.values() {
            match owned.iter_mut().find(|(v, _)| *v == owner.version) {
                Some((_, set)) => *set = set.union(&owner.set),
                None => owned.push((owner.version.clone(), owner.set.clone())),
            }
        }
        let mut merged = merged.clone();
        let mut at = pruned_version.clone();
        for (version, set) in owned {
            let Some(ty) = self.type_in(&version) else { continue };
            let Some(all) = in_version(self.versions, &merged, &at, &version)? else { continue };
            let Some(left) = in_version(self.versions, &pruned, &at, &version)? else { continue };
            let kept = ty.with_named_fields(&ty.field_set(&left)).union(&ty.with_named_fields(&set));
            let removed = ty.with_named_fields(&ty.field_set(&all)).difference(&kept);
            let all = all.into_owned();
            pruned = all.clone();
            ty.remove_items(&mut pruned, &removed);
            (merged, at) = (all, version);
        }
        Ok((pruned, at))
    }
}
