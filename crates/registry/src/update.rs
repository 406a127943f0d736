//! The life of an update, in order:
//! read → the request's change → version guard → reservations → strategy prepares → validation → validating admission → store.
//! A write that finds the object changed starts again with the fresh one; only a resourceVersion given by the client
//! turns that into a conflict.

use crate::admission::{ObjectTexts, Operation};
use crate::create::{Created, Generated, Inserted, Origin, Reserved};
use crate::error;
use crate::judged::has_judged_spec;
use crate::resource::{Current, Known, Resource, resource_version_of, set_resource_version};
use crate::working::Working;
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_meta::call::Call;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::object::validate_object_meta_update;
use kubelith_meta::status::Status;
use kubelith_meta::{GroupKind, Map, Str, Value};
use kubelith_schema::canonical::Form;
use kubelith_schema::lifecycle::Preconditions;
use kubelith_schema::lifecycle::{Generation, Part, count_change};
use kubelith_store::cache::EventKind;
use kubelith_store::{Expect, StoreError};

pub const OPTIMISTIC_LOCK: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Makes the new object of an update. Called again with fresher state if a write was overtaken.
pub trait Change: Send {
    /// What must hold of the stored object before anything else is looked at.
    fn preconditions(&self) -> Preconditions {
        Preconditions::default()
    }

    /// The new object at the working version, given the stored one (`None`: it is to be created).
    fn apply<'a>(&'a mut self, existing: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>>;

    /// Asked before an absent object is created: whether the client may create, too.
    fn may_create(&mut self) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// What validating admission judges, given the new object and the stored one.
    fn judged(&self, _object: &Value, _old: &Value) -> Result<Judged, Status> {
        Ok(Judged::Object)
    }
}

/// What validating admission looks at.
#[derive(Debug)]
pub enum Judged {
    Object,
    /// A view of the object that has a kind of its own, as it is and as it was.
    View(Box<(Value, Value)>),
    /// Nothing: the server itself writes.
    Nothing,
}

/// What an update did.
#[derive(Debug)]
pub struct Updated {
    pub object: Value,
    pub outcome: Outcome,
    /// The object as JSON, if readers get it so.
    pub json: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Updated,
    /// There was no such object, and there is one now.
    Created,
    /// The object was waiting for its last finalizer, and is gone.
    Deleted,
}

/// Whether an absent object is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfAbsent {
    /// As the strategy says.
    Strategy,
    /// Create it: server-side apply.
    Create,
}

impl Resource {
    pub async fn update(
        &self,
        call: &Call,
        change: &mut dyn Change,
        if_absent: IfAbsent,
        options: Option<&Value>,
    ) -> Result<Updated, Status> {
        let key = self.key(&call.namespace, &call.name)?;
        let may_create = if_absent == IfAbsent::Create || self.strategy.creates_on_update();
        let mut turn = None;
        let mut current = match self.update_at_hand(call, change, &key, options).await? {
            AtHand::Done(updated) => return Ok(updated),
            AtHand::Behind(fresh) => fresh,
            AtHand::Unknown => self.current(call, &key).await?,
            AtHand::Overtaken => {
                turn = Some(self.turns.take(&key).await);
                self.current(call, &key).await?
            }
        };
        loop {
            let attempt = match current {
                None if !may_create => return Err(Status::not_found(&call.resource, &call.name)),
                None => self.create_by_update(call, change, options).await?,
                Some(found) => self.update_once(call, change, &key, found, options).await?,
            };
            match attempt {
                Attempt::Done(updated) | Attempt::Unchanged(updated) => return Ok(updated),
                Attempt::Failed(status) => return Err(status),
                Attempt::Overtaken(fresh) if turn.is_some() => current = fresh,
                Attempt::Overtaken(_) => {
                    turn = Some(self.turns.take(&key).await);
                    current = self.current(call, &key).await?;
                }
            }
        }
    }

    /// The update of the object as this server knows it. The store is not asked for the newest state: the write's guard tells
    /// if it is another one. Whatever ends without a write is decided by the newest state only.
    async fn update_at_hand(
        &self,
        call: &Call,
        change: &mut dyn Change,
        key: &str,
        options: Option<&Value>,
    ) -> Result<AtHand, Status> {
        let Some(found) = self.at_hand(call, key).await else { return Ok(AtHand::Unknown) };
        let revision = found.revision;
        let unsettled = match self.update_once(call, change, key, found, options).await {
            Ok(Attempt::Done(updated)) => return Ok(AtHand::Done(updated)),
            Ok(Attempt::Failed(status)) => return Err(status),
            Ok(Attempt::Overtaken(_)) => return Ok(AtHand::Overtaken),
            Ok(Attempt::Unchanged(updated)) => Ok(AtHand::Done(updated)),
            Err(status) => Err(status),
        };
        match self.newer(call, key, revision).await? {
            Some(newest) => Ok(AtHand::Behind(newest)),
            None => unsettled,
        }
    }

    async fn create_by_update(
        &self,
        call: &Call,
        change: &mut dyn Change,
        options: Option<&Value>,
    ) -> Result<Attempt, Status> {
        self.check_preconditions(call, &change.preconditions(), None)?;
        let mut object = change.apply(None).await?;
        resource_version_of(&object)?;
        let _: Generated = self.fill_system_metadata(call, &mut object);
        match self.insert(call, object, Origin::Update(change), options).await? {
            Inserted::Done(Created::Object(object)) => {
                Ok(Attempt::Done(Updated { object, outcome: Outcome::Created, json: None }))
            }
            Inserted::Done(Created::Json(_)) => Err(Status::internal_error("an object was asked for")),
            Inserted::Conflict { current, .. } => current.map(Attempt::Overtaken),
        }
    }

    async fn update_once(
        &self,
        call: &Call,
        change: &mut dyn Change,
        key: &str,
        found: Current,
        options: Option<&Value>,
    ) -> Result<Attempt, Status> {
        self.check_preconditions(call, &change.preconditions(), Some(&found.object))?;
        let mut object = change.apply(Some(&found.object)).await?;
        self.check_version(call, &mut object, found.revision)?;
        let mut reservation = Reserved(self.strategy.begin_update(call, &mut object, &found.object).await?);
        let attempt = self.write(call, change, object, key, found, options).await;
        reservation.settle(matches!(attempt, Ok(Attempt::Done(_) | Attempt::Unchanged(_)))).await;
        attempt
    }

    async fn write(
        &self,
        call: &Call,
        change: &mut dyn Change,
        object: Value,
        key: &str,
        found: Current,
        options: Option<&Value>,
    ) -> Result<Attempt, Status> {
        let mut object = self.before_update(call, object, &found.object).await?;
        keep_managed_times(&mut object, &found.object);
        let judged = change.judged(&object, &found.object)?;
        let texts = ObjectTexts::new(found.json.clone());
        self.judge(call, judged, &object, &found.object, options, &texts).await?;

        if self.vanishes(&object, &found.object) {
            return self.delete_emptied(call, key, object, &found).await;
        }
        if object == found.object && !found.stale && !self.is_stale(call, key).await? {
            return Ok(Attempt::Unchanged(Updated { object, outcome: Outcome::Updated, json: found.json }));
        }
        // All of it was judged just now, or what this part leaves alone was before.
        let is_judged = self.part(call) == Part::Main || has_judged_spec(&object);
        let (text, before) = (texts.into_object(), Some(&found));
        let known = Known { text, kind: EventKind::Modified, is_judged, before };
        let encoded = self.encode(&mut object, known).await?;
        if call.dry_run() {
            let object = self.as_stored(call, object).await?;
            return Ok(Attempt::Done(Updated { object, outcome: Outcome::Updated, json: None }));
        }
        let ttl = self.time_to_live(&object);
        let expect = Expect::At(kubelith_store::Revision(found.revision));
        let draft = encoded.draft.clone();
        match self.put_for(call, key, encoded, expect, ttl).await {
            Ok(revision) => {
                set_resource_version(&mut object, revision.0);
                let json = draft.map(|draft| draft.json_at(revision.0));
                self.remember(key, revision, &mut object, is_judged, json.as_ref());
                let object = self.as_stored(call, object).await?;
                Ok(Attempt::Done(Updated { object, outcome: Outcome::Updated, json }))
            }
            Err(StoreError::Conflict { current }) => self.overtaken(call, current).await,
            Err(e) => Ok(Attempt::Failed(error::from_store(e, &call.resource, &call.name))),
        }
    }

    /// Validating admission of an update.
    async fn judge(
        &self,
        call: &Call,
        judged: Judged,
        object: &Value,
        old: &Value,
        options: Option<&Value>,
        texts: &ObjectTexts,
    ) -> Result<(), Status> {
        let operation = Operation::Update;
        match judged {
            Judged::View(views) => {
                let (view, old) = *views;
                let call = Call { kind: view.gvk(), ..call.clone() };
                self.admission.validate(self.asks(&call, operation, Some(&old), options), &view).await
            }
            Judged::Object => {
                let request = self.asks(call, operation, Some(old), options).with_texts(texts);
                self.admission.validate(request, object).await
            }
            Judged::Nothing => Ok(()),
        }
    }

    /// Whether the object must be written although nothing changes: its encryption is not today's.
    async fn is_stale(&self, call: &Call, key: &str) -> Result<bool, Status> {
        let stale = self.hub.is_stale(self.store_key(key)).await;
        stale.map_err(|e| error::from_store(e, &call.resource, &call.name))
    }

    /// The object lost its last finalizer while it was being deleted: it goes, in place of the update.
    async fn delete_emptied(&self, call: &Call, key: &str, object: Value, found: &Current) -> Result<Attempt, Status> {
        if !call.dry_run() {
            let expect = Expect::At(kubelith_store::Revision(found.revision));
            match self.remove(call, key, expect).await {
                Ok(_) | Err(StoreError::Conflict { current: None }) => {}
                Err(StoreError::Conflict { current }) => return self.overtaken(call, current).await,
                Err(e) => return Ok(Attempt::Failed(error::from_store(e, &call.resource, &call.name))),
            }
            self.strategy.after_delete(call, &object).await;
        }
        Ok(Attempt::Done(Updated { object, outcome: Outcome::Deleted, json: None }))
    }

    pub(crate) async fn overtaken(
        &self,
        call: &Call,
        current: Option<Box<kubelith_store::KeyValue>>,
    ) -> Result<Attempt, Status> {
        let fresh = match current {
            Some(kv) => Some(self.current_of_kv(call, &kv).await?),
            None => None,
        };
        Ok(Attempt::Overtaken(fresh))
    }

    /// Whether the update is the one that lets a deleted object go.
    fn vanishes(&self, object: &Value, old: &Value) -> bool {
        let finalizers = |o: &Value| o.at(&["metadata", "finalizers"]).and_then(Value::as_array).map_or(0, <[_]>::len);
        let grace = old.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        old.at(&["metadata", "deletionTimestamp"]).is_some()
            && finalizers(object) == 0
            && grace.unwrap_or(0) == 0
            && self.strategy.may_vanish(object)
    }

    fn check_version(&self, call: &Call, object: &mut Value, existing: i64) -> Result<(), Status> {
        let given = resource_version_of(object)?;
        if given == 0 && self.strategy.updates_unconditionally() {
            set_resource_version(object, existing);
            return Ok(());
        }
        if given == 0 {
            // The kind in this message is the plural: a quirk of registry/store.go that clients see.
            let kind = GroupKind { group: call.resource.group.clone(), kind: call.resource.resource.clone() };
            let path = Path::new("metadata");
            let mut errors = ErrorList::default();
            errors.push(Error::invalid(
                &path.child("resourceVersion"),
                Value::Int(0),
                "must be specified for an update",
            ));
            return Err(Status::invalid(&kind, &call.name, &errors));
        }
        if given != existing {
            return Err(Status::conflict(&call.resource, &call.name, OPTIMISTIC_LOCK));
        }
        Ok(())
    }

    pub(crate) fn check_preconditions(
        &self,
        call: &Call,
        preconditions: &Preconditions,
        existing: Option<&Value>,
    ) -> Result<(), Status> {
        let of = |key: &str| existing.map_or("", |o| o.str_at(&["metadata", key]));
        if let Some(uid) = preconditions.uid.as_ref().filter(|uid| **uid != of("uid")) {
            let found = of("uid");
            let message = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
            return Err(self.precondition_failed(call, message));
        }
        if let Some(rv) = preconditions.resource_version.as_ref().filter(|rv| **rv != of("resourceVersion")) {
            let found = of("resourceVersion");
            let message = format!(
                "Precondition failed: ResourceVersion in precondition: {rv}, ResourceVersion in object meta: {found}"
            );
            return Err(self.precondition_failed(call, message));
        }
        Ok(())
    }

    fn precondition_failed(&self, call: &Call, problem: String) -> Status {
        let key = self.key(&call.namespace, &call.name).unwrap_or_default();
        // With the usual prefix, whatever --etcd-prefix says: where things are stored is no client's business.
        // A dry run does not get that far in the reference, and names the key without it.
        let root = if call.dry_run() { "" } else { "/registry" };
        let key = format!("{root}/{}/{key}", self.descriptor.storage.prefix);
        // The reference prints its storage error: code, key and all.
        let text = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {problem}"
        );
        Status::conflict(&call.resource, &call.name, &text)
    }

    /// What every update goes through before validating admission.
    async fn before_update(&self, call: &Call, mut object: Value, old: &Value) -> Result<Value, Status> {
        self.ensure_namespace(call, &mut object)?;
        let part = self.part(call);
        copy_meta(&mut object, old, "generation");
        self.keep_other_part(call, part, &mut object, old);
        self.strategy.prepare_for_update(call, part, &mut object, old);
        let mut working = Working::changed(object);
        self.canonicalize_for_rules(call, &mut working);
        let form = working.form();
        let object = &mut working.value;
        keep_system_metadata(object, old);
        object.remove_at(&["metadata", "selfLink"]);

        let consulted = match self.strategy.consult_on_update(call, part, object, old) {
            Some(others) => others.await,
            None => ErrorList::default(),
        };
        let judged = self.strategy.validate_update(call, part, object, old);
        let metadata = || {
            let mut errors = self.validate_metadata(object);
            errors.extend(validate_object_meta_update(object.meta(), old.meta(), &Path::new("metadata")));
            errors
        };
        let checked = part == Part::Main && self.strategy.validates_metadata() && judged.is_empty();
        debug_assert!(!checked || metadata().is_empty(), "metadata is not as it should be");
        let mut errors = if checked { ErrorList::new() } else { metadata() };
        errors.extend(consulted);
        errors.extend(judged);
        if !errors.is_empty() {
            let name = Str::from(object.str_at(&["metadata", "name"]));
            return Err(Status::invalid(&self.kind_of(object), &name, &errors));
        }
        if let (Form::Given, Generation::ExactMember(member)) = (form, self.strategy.generation())
            && object.get(member) != old.get(member)
        {
            count_change(object, old);
        }
        self.strategy.canonicalize(object);
        self.complete(call, &mut working);
        // Both are as stored now, so what differs has changed.
        let mut object = working.value;
        self.count_generation(part, &mut object, old);
        for warning in self.strategy.warnings_on_update(call, part, &object, old) {
            call.warn(warning);
        }
        Ok(object)
    }

    /// A main update cannot touch status, a status update nothing but status (and metadata).
    fn keep_other_part(&self, call: &Call, part: Part<'_>, object: &mut Value, old: &Value) {
        let version = self.working_kind(call).version;
        if !self.strategy.owns_status(self.has_status(&version)) {
            return;
        }
        match part {
            Part::Main => copy_member(object, old, "status"),
            Part::Status => {
                let members =
                    |value: &Value| value.as_object().into_iter().flat_map(Map::keys).map(Str::from).collect();
                let (new, before): (Vec<Str>, Vec<Str>) = (members(object), members(old));
                for key in new.iter().chain(&before).filter(|key| !["metadata", "status"].contains(&key.as_str())) {
                    copy_member(object, old, key);
                }
            }
            Part::Other(_) => {}
        }
    }

    fn count_generation(&self, part: Part<'_>, object: &mut Value, old: &Value) {
        let differs = |key: &str| object.get(key) != old.get(key);
        let others = |skip: &[&str]| {
            let members = |o: &Value| -> Vec<(Str, Value)> {
                let map = o.as_object().into_iter().flat_map(|m| m.iter());
                map.filter(|(k, _)| !skip.contains(k)).map(|(k, v)| (k.into(), v.clone())).collect()
            };
            members(object) != members(old)
        };
        let changed = match self.strategy.generation() {
            Generation::None | Generation::One => false,
            Generation::Spec | Generation::SpecChanges => differs("spec"),
            Generation::Member(member) | Generation::ExactMember(member) => differs(member),
            Generation::ContentAndLabels => {
                let path = ["metadata", "labels"];
                others(&["metadata"]) || object.at(&path) != old.at(&path)
            }
            Generation::SpecAndAnnotations => {
                let path = ["metadata", "annotations"];
                // Who writes the status may annotate without being counted.
                part == Part::Main && (differs("spec") || object.at(&path) != old.at(&path))
            }
            Generation::AllButMetadataAndStatus => others(&["metadata", "status"]),
            Generation::AllButMetadata => others(&["metadata"]),
        };
        if changed {
            count_change(object, old);
        }
    }
}

pub(crate) enum Attempt {
    Done(Updated),
    /// Nothing was to be written.
    Unchanged(Updated),
    /// The store refused the write, or nobody knows whether it took it.
    Failed(Status),
    /// The object was changed meanwhile (`None`: deleted).
    Overtaken(Option<Current>),
}

/// What came of an update of the object as this server knew it.
enum AtHand {
    Done(Updated),
    /// It ended without a write, and there is a newer state (`None`: it is gone).
    Behind(Option<Current>),
    /// A write came before.
    Overtaken,
    /// Nothing was at hand, so nothing was tried.
    Unknown,
}

/// Makes `object[key]` what it is in `from`, absent if it is absent there.
fn copy_member(object: &mut Value, from: &Value, key: &str) {
    if object.get(key) != from.get(key) {
        object.copy_at(&[key], from);
    }
}

fn copy_meta(object: &mut Value, from: &Value, key: &str) {
    object.copy_at(&["metadata", key], from);
}

/// uid if none is given, creation and deletion times whatever is given.
fn keep_system_metadata(object: &mut Value, old: &Value) {
    if object.str_at(&["metadata", "uid"]).is_empty() {
        copy_meta(object, old, "uid");
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if old.at(&["metadata", key]).is_some_and(|v| !v.is_null()) {
            copy_meta(object, old, key);
        }
    }
    if object.at(&["metadata", "deletionGracePeriodSeconds"]).is_none() {
        copy_meta(object, old, "deletionGracePeriodSeconds");
    }
}

/// If an update changes nothing but the times in managedFields, it changes nothing: the old times stay, and with
/// them the resourceVersion.
fn keep_managed_times(object: &mut Value, old: &Value) {
    const PATH: [&str; 2] = ["metadata", "managedFields"];
    let (Some(new_entries), Some(old_entries)) =
        (object.at(&PATH).and_then(Value::as_array), old.at(&PATH).and_then(Value::as_array))
    else {
        return;
    };
    if new_entries.len() != old_entries.len() || new_entries == old_entries {
        return;
    }
    if !new_entries.iter().zip(old_entries).all(|(a, b)| differ_in_time_at_most(a, b)) {
        return;
    }
    let mut tried = Value::Array(old_entries.to_vec());
    let mut swap = |object: &mut Value| {
        if let Some(entries) = object.at_mut(&PATH) {
            std::mem::swap(entries, &mut tried);
        }
    };
    swap(object);
    if *object != *old {
        swap(object);
    }
}

fn differ_in_time_at_most(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let untimed = |m: &Map| m.len() - usize::from(m.contains_key("time"));
    untimed(a) == untimed(b) && a.iter().all(|(key, value)| key == "time" || b.get(key) == Some(value))
}
