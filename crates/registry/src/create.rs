//! The life of a create, in order:
//! system metadata and name → reservations → strategy prepares → validation → validating admission → store.

use crate::admission::{ObjectTexts, Operation};
use crate::error;
use crate::resource::{Current, Known, Resource, WorkingVersion, resource_version_of, set_resource_version};
use crate::strategy::Begun;
use crate::update::Change;
use crate::working::Working;
use bytes::Bytes;
use futures::future::Either;
use kubelith_meta::call::Call;
use kubelith_meta::field::{ErrorList, Path};
use kubelith_meta::object::{Namespacing, validate_object_meta};
use kubelith_meta::random::MadeUp;
use kubelith_meta::status::Status;
use kubelith_meta::{GroupKind, GroupVersionKind, Str, Value, names};
use kubelith_schema::canonical::Empties;
use kubelith_schema::lifecycle::{Generation, Part};
use kubelith_schema::{Encoding, TypedSchema};
use kubelith_store::cache::EventKind;
use kubelith_store::{Expect, StoreError};

/// Names are random below a generateName: this many are looked up to find a free one. With a million names taken, eight of them
/// are taken once in a billion creates.
const NAME_ATTEMPTS: usize = 8;

/// What the caller of a create does with what was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The JSON that readers get will do, where it is known: the object is thrown away before the store is waited for,
    /// so that the next request finds its memory still warm.
    Json,
    Object,
}

/// What a create did.
#[derive(Debug)]
pub enum Created {
    Object(Value),
    /// The object as readers get it.
    Json(Bytes),
}

impl Resource {
    /// Creates `object`, which is at the working version, defaulted and admitted by mutating admission.
    /// The answer has its resourceVersion, unless it is a dry run.
    ///
    /// Dropping the future may or may not undo the create; spawn it if it must not depend on the client.
    pub async fn create(
        &self,
        call: &Call,
        mut object: Value,
        options: Option<&Value>,
        wanted: Wanted,
    ) -> Result<Created, Status> {
        let generated = self.fill_system_metadata(call, &mut object);
        match self.insert(call, object, Origin::Create(wanted), options).await? {
            Inserted::Done(created) => Ok(created),
            Inserted::Conflict { name, current } => {
                let current = current.ok().flatten();
                Err(self.already_exists(call, &name, generated, current.as_ref().map(|found| &found.object)))
            }
        }
    }

    /// The life of every new object from its reservations on, whether it comes by a create or by an update of a name that
    /// nothing has.
    pub(crate) async fn insert(
        &self,
        call: &Call,
        mut object: Value,
        origin: Origin<'_>,
        options: Option<&Value>,
    ) -> Result<Inserted, Status> {
        let mut reservation = Reserved(self.strategy.begin_create(call, &mut object).await?);
        let inserted = self.insert_reserved(call, object, origin, options).await;
        reservation.settle(matches!(inserted, Ok(Inserted::Done(_)))).await;
        inserted
    }

    async fn insert_reserved(
        &self,
        call: &Call,
        object: Value,
        mut origin: Origin<'_>,
        options: Option<&Value>,
    ) -> Result<Inserted, Status> {
        let mut object = self.before_create(call, object)?;
        if let Origin::Update(change) = &mut origin {
            change.may_create().await?;
        }
        let name = Str::from(object.str_at(&["metadata", "name"]));
        // Who judges what is about to be stored knows its name, also if it was made here.
        let named = call.name.is_empty().then(|| Call { name: name.clone(), ..call.clone() });
        let request = self.asks(named.as_ref().unwrap_or(call), Operation::Create, None, options);
        let texts = ObjectTexts::default();
        self.admission.validate(request.with_texts(&texts), &object).await?;
        let key = self.key(&call.namespace, &name)?;
        if resource_version_of(&object).unwrap_or(0) != 0 {
            match origin {
                // A dry run does not get as far as the store, which is what minds.
                Origin::Create(_) if call.dry_run() => {}
                Origin::Create(_) => {
                    return Err(Status::unknown("resourceVersion should not be set on objects to be created"));
                }
                Origin::Update(_) => drop(object.remove_at(&["metadata", "resourceVersion"])),
            }
        }
        let wants_json = matches!(origin, Origin::Create(Wanted::Json));
        let rehearsed = (call.dry_run() && wants_json && self.is_kept_as_is(&object))
            .then(|| Bytes::copy_from_slice(texts.object(&object)));
        let known = Known { text: texts.into_object(), kind: EventKind::Added, is_judged: true, before: None };
        let encoded = self.encode(&mut object, known).await?;
        if call.dry_run() {
            let found = self.current(call, &key).await?;
            return Ok(match (found, rehearsed.filter(|_| encoded.draft.is_some())) {
                (Some(found), _) => Inserted::Conflict { name, current: Ok(Some(found)) },
                (None, Some(json)) => Inserted::Done(Created::Json(json)),
                (None, None) => Inserted::Done(Created::Object(self.as_stored(call, object).await?)),
            });
        }
        let ttl = self.time_to_live(&object);
        // Where its JSON will do, the object goes before the store is waited for.
        let answer = match &encoded.draft {
            Some(draft) if wants_json => Either::Left(draft.clone()),
            _ => Either::Right(object),
        };
        match self.put_for(call, &key, encoded, Expect::Absent, ttl).await {
            Ok(revision) => {
                self.made_up.used_uid(&self.uid_purpose(call, &name));
                Ok(Inserted::Done(match answer {
                    Either::Left(draft) => Created::Json(draft.json_at(revision.0)),
                    Either::Right(mut object) => {
                        set_resource_version(&mut object, revision.0);
                        Created::Object(self.as_stored(call, object).await?)
                    }
                }))
            }
            Err(StoreError::Conflict { current: None }) => Ok(Inserted::Conflict { name, current: Ok(None) }),
            Err(StoreError::Conflict { current: Some(kv) }) => {
                Ok(Inserted::Conflict { name, current: self.current_of_kv(call, &kv).await.map(Some) })
            }
            Err(e) => Err(error::from_store(e, &call.resource, &name)),
        }
    }

    fn already_exists(&self, call: &Call, name: &str, generated: Generated, found: Option<&Value>) -> Status {
        let mut status = match generated {
            Generated::Yes => Status::generate_name_conflict(&call.resource, name, 1),
            Generated::No => Status::already_exists(&call.resource, name),
        };
        if found.is_some_and(|f| f.at(&["metadata", "deletionTimestamp"]).is_some()) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }

    /// What the uid of an object with a name is for, where it is not random.
    fn uid_purpose<'a>(&'a self, call: &'a Call, name: &'a str) -> [&'a str; 3] {
        [&self.descriptor.plural, &call.namespace, name]
    }

    /// creationTimestamp, uid and, below a generateName, the name.
    pub(crate) fn fill_system_metadata(&self, call: &Call, object: &mut Value) -> Generated {
        let meta = object.make_object().entry_or_null("metadata").make_object();
        meta.insert("creationTimestamp", self.clock.now().rfc3339());
        let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or("");
        let uid = match (&self.made_up, text("name")) {
            (MadeUp::Random, _) => self.made_up.uid(&[]),
            (MadeUp::Seeded(_), "") => {
                self.made_up.uid(&[&self.descriptor.plural, &call.namespace, text("generateName")])
            }
            (MadeUp::Seeded(_), name) => self.made_up.next_uid(&self.uid_purpose(call, name)),
        };
        meta.insert("uid", uid);
        let empty =
            |key: &str, meta: &kubelith_meta::Map| meta.get(key).and_then(Value::as_str).is_none_or(str::is_empty);
        if !empty("generateName", meta) {
            if empty("name", meta) {
                let prefix = meta.get("generateName").and_then(Value::as_str).unwrap_or("");
                let name = self.free_name(call, prefix);
                meta.insert("name", name);
            }
            return Generated::Yes;
        }
        Generated::No
    }

    /// A name below a generateName that nothing has, as far as the cache knows. That it is taken until the object is stored is left to
    /// chance, which is as small as the time between: whoever tried again would have to keep a copy of each object.
    fn free_name(&self, call: &Call, prefix: &str) -> Str {
        let generate = || self.made_up.generate_name(prefix, &[&self.descriptor.plural, prefix]);
        let is_taken = |name: &Str| self.key(&call.namespace, name).is_ok_and(|key| self.cache.get(&key).is_some());
        let mut name = generate();
        for _ in 1..NAME_ATTEMPTS {
            if !is_taken(&name) {
                break;
            }
            name = generate();
        }
        name
    }

    /// What errors call the kind: events are those of the core group, whichever way they came.
    pub(crate) fn stored_kind(&self) -> GroupKind {
        self.descriptor.storage.kind.group_kind()
    }

    /// What every create goes through before validating admission.
    pub(crate) fn before_create(&self, call: &Call, mut object: Value) -> Result<Value, Status> {
        self.ensure_namespace(call, &mut object)?;
        let version = self.working_kind(call).version;
        if self.strategy.owns_status(self.has_status(&version)) && !self.strategy.keeps_status_on_create() {
            object.make_object().remove("status");
        }
        match self.strategy.generation() {
            Generation::None | Generation::SpecChanges => {}
            _ => object.set_at(&["metadata", "generation"], Value::Int(1)),
        }
        self.strategy.prepare_for_create(call, &mut object);
        let mut working = Working::changed(object);
        self.canonicalize_for_rules(call, &mut working);

        let object = &working.value;
        let name = Str::from(object.str_at(&["metadata", "name"]));
        let errors = self.strategy.validate(call, object);
        if !errors.is_empty() {
            return Err(Status::invalid(&self.kind_of(object), &name, &errors));
        }
        let checked = self.strategy.validates_metadata();
        debug_assert!(!checked || self.validate_metadata(object).is_empty(), "metadata is not as it should be");
        let errors = if checked { ErrorList::new() } else { self.validate_metadata(object) };
        if !errors.is_empty() {
            return Err(Status::invalid(&self.kind_of(object), &name, &errors));
        }
        for warning in self.strategy.warnings_on_create(call, object) {
            call.warn(warning);
        }
        self.strategy.canonicalize(&mut working.value);
        self.complete(call, &mut working);
        Ok(working.value)
    }

    /// Brings an object that a strategy prepared into its canonical form. Rules and their messages tell an empty list from an
    /// absent one; the store does not.
    pub(crate) fn canonicalize_for_rules(&self, call: &Call, object: &mut Working) {
        if let Some(schema) = self.working_schema(call) {
            object.canonicalize(&schema, self.empties_in_rules());
        }
    }

    /// What is stored is read with defaults, so the answer to a write has them, too: the strategy may have emptied
    /// what a default fills.
    pub(crate) fn complete(&self, call: &Call, object: &mut Working) {
        let (WorkingVersion::One(kind), Some(schema)) = (&self.working, self.working_schema(call)) else { return };
        object.settle(&schema, self.empties());
        self.strategy.default_object(&kind.version, &mut object.value);
        debug_assert!(self.is_complete(&schema, &object.value, kind), "what was passed over is not as it should be");
    }

    /// Whether the object is as if nothing in it had been passed over.
    fn is_complete(&self, schema: &TypedSchema, object: &Value, kind: &GroupVersionKind) -> bool {
        let mut whole = object.clone();
        whole.unseal();
        self.strategy.default_object(&kind.version, &mut whole);
        let mut whole = Working::changed(whole);
        whole.canonicalize(schema, self.empties());
        whole.value == *object
    }

    /// The object's namespace is the request's: filled in if absent, refused if it is another.
    pub fn ensure_namespace(&self, call: &Call, object: &mut Value) -> Result<(), Status> {
        let given = object.str_at(&["metadata", "namespace"]);
        if !self.namespaced() {
            // A namespace given to a cluster-scoped object is dropped, as long as the request has none.
            if !given.is_empty() {
                object.remove_at(&["metadata", "namespace"]);
            }
            return Ok(());
        }
        if given.is_empty() {
            object.set_at(&["metadata", "namespace"], Value::String(call.namespace.clone()));
        } else if given != call.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// The schema of the version that strategies see.
    fn working_schema(&self, call: &Call) -> Option<TypedSchema> {
        let kind = self.working_kind(call);
        // Events of events.k8s.io are stored, and seen here, as those of the core group.
        if kind.group == self.descriptor.group {
            self.descriptor.version(&kind.version).map(|v| v.schema.clone())
        } else {
            kubelith_catalog::builtin().kind_schema(&kind)
        }
    }

    /// How empty lists and maps look to strategies and rules. Custom resources have no types that forget them later.
    pub fn empties_in_rules(&self) -> Empties {
        match &self.working {
            WorkingVersion::One(_) => Empties::Given,
            WorkingVersion::Request => Empties::Distinct,
        }
    }

    /// How empty lists and maps look once they are stored.
    pub fn empties(&self) -> Empties {
        match self.descriptor.storage.encoding {
            Encoding::Protobuf => Empties::Absent,
            Encoding::Json => Empties::Distinct,
        }
    }

    /// The rules that metadata of every kind must obey.
    pub(crate) fn validate_metadata(&self, object: &Value) -> ErrorList {
        let namespacing = if self.namespaced() { Namespacing::Required } else { Namespacing::Forbidden };
        validate_object_meta(object.meta(), namespacing, names::name_is_path_segment, &Path::new("metadata"))
    }

    /// The kind that errors about an object name: custom resources may say that they are something else.
    pub(crate) fn kind_of(&self, object: &Value) -> GroupKind {
        match &self.working {
            WorkingVersion::One(_) => self.stored_kind(),
            WorkingVersion::Request => object.gvk().group_kind(),
        }
    }

    /// A scale is a view of the resource itself: writing it is writing that.
    pub(crate) fn part<'a>(&self, call: &'a Call) -> Part<'a> {
        match call.subresource.as_str() {
            "scale" => Part::Main,
            other => Part::of(other),
        }
    }
}

/// How a new object comes.
pub(crate) enum Origin<'a> {
    Create(Wanted),
    /// By an update or an apply, whose author must be allowed to create.
    Update(&'a mut dyn Change),
}

/// What became of a new object.
pub(crate) enum Inserted {
    Done(Created),
    /// There is an object of that name, this one as far as is known.
    Conflict {
        name: Str,
        current: Result<Option<Current>, Status>,
    },
}

/// Whether the name was (or would have been) made from generateName.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generated {
    Yes,
    No,
}

/// A reservation until the write that it is for is done or has failed.
pub(crate) struct Reserved(pub(crate) Begun);

impl Reserved {
    /// Confirms or undoes it.
    pub(crate) async fn settle(&mut self, written: bool) {
        match self.0.take() {
            Some(reservation) if written => reservation.commit().await,
            Some(reservation) => reservation.revert().await,
            None => {}
        }
    }
}

/// A request that is dropped midway undoes its reservation in the background.
impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(reservation) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(reservation.revert());
        }
    }
}
