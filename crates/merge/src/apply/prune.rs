//! Removal by omission.
//!
//! An item goes if the applier applied it last time, does not apply it now, and nobody else owns it. The steps: take out
//! everything that was applied last; put back what anybody owns now, in whatever version; and put back what went only
//! because something around it did (defaults in a list element, say) but was never the applier's.

use super::versions::in_version;
use super::{Owner, Owners, UpdateError, Updater};
use crate::fieldset::Set;
use kubelith_meta::{Str, Value};
use std::borrow::Cow;

impl Updater<'_> {
    /// Whether applying `now` can remove anything of what was applied as `last`. If all of it is applied again, everything
    /// on the way to it is owned, too, and nothing can go.
    pub(super) fn may_prune(&self, last: &Owner, now: &Set) -> bool {
        !last.is_empty() && (last.version != self.version || !last.set().is_subset(now))
    }

    /// `merged` without what was applied as `last` and nobody owns now.
    pub(super) fn prune(&self, merged: Value, owners: &Owners, last: Owner) -> Result<Value, UpdateError> {
        let failed = |what: &str, e: UpdateError| UpdateError::Failed(format!("failed to prune fields: {what}: {e}"));
        let base = in_version(self.versions, &merged, self.version, &last.version)
            .map_err(|e| failed("failed to convert merged object to last applied version", e))?;
        let (Some(base), Some(ty)) = (base, self.type_in(&last.version)) else { return Ok(merged) };
        let base = base.into_owned();

        let last_set = ty.with_named_fields(last.set());
        let everything = ty.with_named_fields(&ty.field_set(&base));
        let mut pruned = base.clone();
        ty.remove_items(&mut pruned, &last_set);
        let (pruned, version) = self
            .add_back_owned(&base, &everything, pruned, &last.version, owners)
            .map_err(|e| failed("failed add back owned items", e))?;

        let back = in_version(self.versions, &pruned, &version, &last.version).map_err(|e| {
            failed("failed add back dangling items: failed to convert pruned object to last applied version", e)
        })?;
        let removed = match back {
            Some(pruned) => {
                let kept = ty.with_named_fields(&ty.field_set(&pruned));
                everything.difference(&kept).intersection(&last_set)
            }
            None => Set::new(),
        };
        let mut result = base;
        ty.remove_items(&mut result, &removed);
        match in_version(self.versions, &result, &last.version, self.version).map_err(|e| failed("", e))? {
            Some(result) => Ok(result.into_owned()),
            None => Err(UpdateError::Failed(format!("no corresponding type for {}", self.version))),
        }
    }

    /// `pruned` with every item of `merged` (whose items are `everything`) that anybody owns, and the version that it ends up in. The version that was
    /// pruned in comes first, for other versions may not convert without what was removed.
    fn add_back_owned(
        &self,
        merged: &Value,
        everything: &Set,
        mut pruned: Value,
        pruned_version: &Str,
        owners: &Owners,
    ) -> Result<(Value, Str), UpdateError> {
        let mut owned: Vec<(Str, Set)> = vec![(pruned_version.clone(), Set::new())];
        for owner in owners.values() {
            match owned.iter_mut().find(|(v, _)| *v == owner.version) {
                Some((_, set)) => *set = set.union(owner.set()),
                None => owned.push((owner.version.clone(), owner.set().clone())),
            }
        }
        let mut merged = Cow::Borrowed(merged);
        let mut at = pruned_version.clone();
        for (version, set) in owned {
            let Some(ty) = self.type_in(&version) else { continue };
            let Some(all) = in_version(self.versions, &merged, &at, &version)? else { continue };
            let Some(left) = in_version(self.versions, &pruned, &at, &version)? else { continue };
            let kept = ty.with_named_fields(&ty.field_set(&left).union(&set));
            let removed = if version == *pruned_version {
                everything.difference(&kept)
            } else {
                ty.with_named_fields(&ty.field_set(&all)).difference(&kept)
            };
            let all = all.into_owned();
            pruned = all.clone();
            ty.remove_items(&mut pruned, &removed);
            (merged, at) = (Cow::Owned(all), version);
        }
        Ok((pruned, at))
    }
}
