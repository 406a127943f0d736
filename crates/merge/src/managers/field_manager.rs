//! The field manager of a resource or subresource in one version.

use super::creations::Creations;
use super::entries::{self, Managed, is_present, is_reset};
use super::last_applied;
use super::names::{describe, kind_of};
use crate::apply::{Applied, Conflicts, Force, ManagerId, Operation, Owners, UpdateError, Updater, Versions, Wanted};
use crate::fieldset::{Filter, Mask, Outlines, Set};
use crate::typed::{Duplicates, Type, fields_of_new};
use kubelith_meta::{GroupVersionKind, Status, Str, Time, Value};
use std::sync::{Arc, LazyLock};

/// More updaters are merged, the oldest first. Appliers do not count.
const MAX_UPDATERS: usize = 10;

/// The updater that old ones are merged into.
const OLD_UPDATES: &str = "ancient-changes";

/// The updater that owns what was there before an object's first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields that identify an object. Everybody mentions them, nobody owns them.
static NOBODYS_FIELDS: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Keeps `managedFields` of objects. All objects handed in are in the version of `kind`.
#[derive(Clone)]
pub struct FieldManager<'a> {
    pub versions: &'a dyn Versions,
    /// What requests carry: the resource's kind, or that of a subresource with its own (Scale).
    pub kind: GroupVersionKind,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// By `apiVersion`: fields that requests here cannot set.
    pub reset: &'a [(Str, Filter)],
    /// Those of the resource's objects.
    pub outlines: Option<&'a Outlines>,
    /// Those of the resource's objects in this version.
    pub creations: Option<&'a Creations>,
}

/// What an apply gives.
#[derive(Debug, Clone)]
pub struct ApplyOutcome {
    /// The merged object with its new `managedFields`. It may hold nulls and lack defaults: decode it and default it
    /// like a request body.
    pub object: Value,
    /// Whether anything but ownership changed.
    pub changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{0}")]
    BadRequest(String),
    #[error("{0}")]
    Conflicts(Conflicts),
    /// 500 without a reason.
    #[error("{0}")]
    Internal(String),
}

/// An apply under way.
struct Request<'r> {
    ty: Type<'r>,
    live: &'r Value,
    patch: &'r Value,
    manager: &'r str,
    now: Time,
}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Status {
        match error {
            ApplyError::BadRequest(message) => Status::bad_request(message),
            ApplyError::Conflicts(conflicts) => conflicts.into(),
            ApplyError::Internal(message) => Status::unknown(message),
        }
    }
}

impl From<UpdateError> for ApplyError {
    fn from(error: UpdateError) -> ApplyError {
        match error {
            UpdateError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
            UpdateError::Failed(message) => ApplyError::Internal(message),
        }
    }
}

impl FieldManager<'_> {
    /// `new` with `managedFields` as they are after `manager` (create, update or patch) turned `live` into it. `live`
    /// is `None` on creation. If ownership cannot be told, the object goes without.
    pub fn update(&self, live: Option<&Value>, new: Value, manager: &str, now: Time) -> Value {
        let mut object = new;
        let managed = self.requested_or_live(live, &mut object);
        if live.is_none() && managed.owners.is_empty() && self.note_creator(&mut object, manager, now).is_ok() {
            return object;
        }
        let managed = self.update_managed(live, &object, managed, manager, now).unwrap_or_default();
        managed.store(&mut object);
        object
    }

    /// The shorter way to `managedFields` of a new object; an error if it is too short.
    fn note_creator(&self, object: &mut Value, manager: &str, now: Time) -> Result<(), ()> {
        let version = self.kind.api_version();
        let ty = self.ty().map_err(drop)?;
        let mask = owned_mask(&self.updater(ty, &version)).ok_or(())?;
        let fields = match self.creations {
            Some(creations) => creations.fields_of_new(ty, object, mask)?,
            None => fields_of_new(ty, object, mask)?.map(Arc::from),
        };
        if let Some(fields) = fields {
            let id = self.manager_id(manager, Operation::Update, &version);
            entries::store_first(object, id, version.into(), fields, Str::from(now.rfc3339()));
        }
        Ok(())
    }

    /// The ownership after an update, where it was `managed` before.
    fn update_managed(
        &self,
        live: Option<&Value>,
        new: &Value,
        managed: Managed,
        manager: &str,
        now: Time,
    ) -> Result<Managed, ApplyError> {
        let is_create = live.is_none_or(|l| l.str_at(&["metadata", "uid"]).is_empty());
        // An object that is not tracked stays so until it is applied.
        if managed.owners.is_empty() && !is_create {
            return Ok(managed);
        }
        let ty = self.ty()?;
        match live {
            Some(live) => self.track_update(ty, live, new, managed, manager, now),
            None => self.track_update(ty, &ty.zero(), new, managed, manager, now),
        }
    }

    /// The entries that `new` carries, if it may change them and they can be read; else those of `live`. `new` has none
    /// afterwards.
    fn requested_or_live(&self, live: Option<&Value>, new: &mut Value) -> Managed {
        let of_live = || live.and_then(|l| Managed::of_known(l, self.outlines).ok()).unwrap_or_default();
        let reset = is_reset(new);
        let requested = Managed::take(new, self.outlines);
        if !self.subresource.is_empty() {
            return of_live();
        }
        match requested {
            _ if reset => Managed::default(),
            Ok(managed) if !managed.owners.is_empty() => managed,
            _ => of_live(),
        }
    }

    fn track_update(
        &self,
        ty: Type<'_>,
        live: &Value,
        new: &Value,
        mut managed: Managed,
        manager: &str,
        now: Time,
    ) -> Result<Managed, ApplyError> {
        let fail = |what: &str, object: &Value, e: String| {
            ApplyError::Internal(format!("failed to convert {what} object ({}) to smd typed: {e}", describe(object)))
        };
        let is_known = self.versions.are_decoded_by_type() && !managed.owners.is_empty();
        let fits = if is_known { ty.validate_change(live, new) } else { ty.validate(new, Duplicates::Allowed) };
        fits.map_err(|e| fail("new", new, e.to_string()))?;
        if !is_known {
            ty.validate(live, Duplicates::Allowed).map_err(|e| fail("live", live, e.to_string()))?;
        }
        let version = self.kind.api_version();
        let id = self.manager_id(manager, Operation::Update, &version);
        let updater = self.updater(ty, &version);
        if let Some(owner) = updater.update(live, new, &mut managed.owners, id, &NOBODYS_FIELDS)? {
            owner.time = Some(Str::from(now.rfc3339()));
        }
        cap_updaters(&mut managed.owners);
        Ok(managed)
    }

    /// Applies `patch` for `manager`. `live` is `None` if the object does not exist.
    pub fn apply(
        &self,
        live: Option<&Value>,
        patch: &Value,
        manager: &str,
        force: Force,
        now: Time,
    ) -> Result<ApplyOutcome, ApplyError> {
        let managed = live
            .map_or_else(|| Ok(Managed::default()), |live| Managed::of_known(live, self.outlines))
            .map_err(|e| ApplyError::Internal(format!("failed to decode managed fields: {e}")))?;
        let kind = kind_of(patch);
        if kind != self.kind {
            return Err(ApplyError::BadRequest(format!("invalid object type: {kind}")));
        }
        let ty = self.ty()?;
        let live = match live {
            Some(live) => without_managed_fields(live),
            None => self.empty_object(ty),
        };
        let request = Request { ty, live: &live, patch, manager, now };
        // Only kubectl may have to try again.
        let spare = (manager == last_applied::KUBECTL).then(|| managed.clone());
        let (changed, managed) = match (self.merge(&request, managed, force), spare) {
            (Err(ApplyError::Conflicts(conflicts)), Some(managed)) => {
                // What kubectl applied from the client's side before is its own.
                let excused = last_applied::excused_fields(&live, ty, &self.kind).unwrap_or_default();
                let left: Vec<_> = conflicts.0.into_iter().filter(|c| !excused.contains(&c.path)).collect();
                if !left.is_empty() {
                    return Err(ApplyError::Conflicts(Conflicts(left)));
                }
                self.merge(&request, managed, Force::Yes)?
            }
            (result, _) => result?,
        };
        let mut outcome = ApplyOutcome { changed: changed.is_some(), object: changed.unwrap_or(live) };
        managed.store(&mut outcome.object);
        if manager == last_applied::KUBECTL {
            last_applied::renew(&mut outcome.object, patch);
        }
        Ok(outcome)
    }

    /// The merged object, if anything changes, and who owns what in it.
    fn merge(
        &self,
        request: &Request<'_>,
        mut managed: Managed,
        force: Force,
    ) -> Result<(Option<Value>, Managed), ApplyError> {
        let Request { ty, live, patch, manager, now } = *request;
        // An object that has owners was told its fields before.
        let is_known = self.versions.are_decoded_by_type() && !managed.owners.is_empty();
        if managed.owners.is_empty() {
            let wrap = |e| ApplyError::Internal(format!("failed to create manager for existing fields: {e}"));
            let empty = self.empty_object(ty);
            managed = self.track_update(ty, &empty, live, managed, BEFORE_FIRST_APPLY, now).map_err(wrap)?;
        }
        if is_present(patch) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
        }
        let fail = |what: &str, object: &Value, e: String| {
            ApplyError::Internal(format!("failed to create typed {what} object ({}): {e}", describe(object)))
        };
        let version = self.kind.api_version();
        let updater = self.updater(ty, &version);
        let written = owned_mask(&updater).and_then(|mask| ty.written_field_set(patch, mask));
        let wanted = match written {
            Some(written) => Wanted::Written(written),
            None => {
                ty.validate(patch, Duplicates::Refused).map_err(|e| fail("patch", patch, e.to_string()))?;
                Wanted::Set(ty.field_set(patch))
            }
        };
        if !is_known {
            ty.validate(live, Duplicates::Allowed).map_err(|e| fail("live", live, e.to_string()))?;
        }
        let id = self.manager_id(manager, Operation::Apply, &version);
        let applied = updater.apply(live, patch, wanted, &mut managed.owners, &id, force)?;
        if let Some(owner) = managed.owners.get_mut(&id) {
            owner.lose(&NOBODYS_FIELDS);
            if matches!(applied, Applied::Changed(_)) {
                owner.time = Some(Str::from(now.rfc3339()));
            }
            if owner.is_empty() {
                managed.owners.remove(&id);
            }
        }
        let changed = match applied {
            Applied::Changed(object) => Some(object),
            Applied::Unchanged => None,
        };
        Ok((changed, managed))
    }

    fn ty(&self) -> Result<Type<'_>, ApplyError> {
        let missing = || ApplyError::Internal(format!("no corresponding type for {}", self.kind));
        self.versions.type_in(&self.kind.api_version()).ok_or_else(missing)
    }

    fn updater<'u>(&'u self, ty: Type<'u>, version: &'u str) -> Updater<'u> {
        Updater { versions: self.versions, version, ty, reset: self.reset }
    }

    /// An object of the kind with nothing in it.
    fn empty_object(&self, ty: Type<'_>) -> Value {
        let mut object = ty.zero();
        object.set_at(&["apiVersion"], Value::from(self.kind.api_version()));
        object.set_at(&["kind"], Value::from(self.kind.kind.clone()));
        object
    }

    fn manager_id(&self, manager: &str, operation: Operation, version: &str) -> ManagerId {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        ManagerId::new(manager, operation, version, self.subresource)
    }
}

/// What writing the fields of a whole object leaves out, if it can be told by field.
fn owned_mask<'u>(updater: &Updater<'u>) -> Option<Mask<'u>> {
    let excluded = match updater.filter(updater.version) {
        None => None,
        Some(Filter::Exclude(excluded)) => Some(excluded),
        Some(Filter::Include(_)) => return None,
    };
    Some(Mask { nobodys: Some(&NOBODYS_FIELDS), excluded })
}

/// A copy of `object` that ownership does not have to walk through its own records in.
fn without_managed_fields(object: &Value) -> Value {
    let Value::Object(members) = object else { return object.clone() };
    let strip = |(key, value): (&str, &Value)| {
        let value = match (key, value) {
            ("metadata", Value::Object(metadata)) => {
                let kept = metadata.iter().filter(|(k, _)| *k != "managedFields");
                Value::Object(kept.map(|(k, v)| (Str::from(k), v.clone())).collect())
            }
            _ => value.clone(),
        };
        (Str::from(key), value)
    };
    Value::Object(members.iter().map(strip).collect())
}

/// Merges the oldest updaters of each version until there are no more than allowed.
fn cap_updaters(owners: &mut Owners) {
    let mut updaters: Vec<(i64, ManagerId)> = owners
        .iter()
        .filter(|(_, owner)| owner.operation == Operation::Update)
        .map(|(id, owner)| (entries::seconds(owner), id.clone()))
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let mut first_of_version: Vec<(Str, ManagerId)> = Vec::new();
    for (_, id) in updaters {
        if count <= MAX_UPDATERS {
            break;
        }
        let Some(version) = owners.get(&id).map(|o| o.version.clone()) else { continue };
        let Some((_, first)) = first_of_version.iter().find(|(v, _)| *v == version) else {
            first_of_version.push((version, id));
            continue;
        };
        let bucket = ManagerId::new(OLD_UPDATES, Operation::Update, &version, "");
        if !owners.contains_key(&bucket)
            && let Some(owner) = owners.remove(first)
        {
            owners.insert(bucket.clone(), owner);
        }
        let Some(merged) = owners.get(&id).cloned() else { continue };
        if let Some(owner) = owners.get_mut(&bucket) {
            owner.replace_set(owner.set().union(merged.set()));
            // The one being merged is the more recent.
            owner.time = merged.time;
        }
        if id != bucket {
            owners.remove(&id);
            count -= 1;
        }
    }
}
