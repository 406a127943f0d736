//! One resource, ready to be served: its descriptor, its behaviour, its place in the store.

use crate::admission::{Admission, Operation, Request};
use crate::error;
use crate::judged::mark_judged;
use crate::options::ReadAt;
use crate::strategy::Strategy;
use crate::turns::Turns;
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_codec::json;
use kubelith_codec::object::ObjectText;
use kubelith_meta::call::{Call, Wait};
use kubelith_meta::names::{self, NameUse};
use kubelith_meta::random::MadeUp;
use kubelith_meta::status::Status;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersionKind, Str, Value};
use kubelith_schema::{Descriptor, Encoding, Scope};
use kubelith_store::cache::{
    CachedObject, Draft, EventKind, Hub, Oddities, ReadBy, Rendered, Renderer, ResourceCache, Snapshot,
};
use kubelith_store::{Deleted, Expect, KeyRange, RangeRequest, Revision, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Brings objects from one version of their kind to another.
pub trait Conversion: Send + Sync + 'static {
    /// `object` says by its apiVersion what it is. Only called if it is not `to` already.
    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value, Status>>;

    /// Whether labels and fields may be others in another version.
    fn rewrites(&self) -> bool {
        false
    }

    /// Of the definition that it follows, where there is one: what an earlier one converted is not what this one would.
    fn generation(&self) -> i64 {
        0
    }
}

/// Turns objects into stored bytes; the other direction is the cache's `Renderer`.
pub trait Encoder: Send + Sync + 'static {
    /// `object` is at the storage version and has no resourceVersion.
    fn encode(&self, object: &Value) -> Result<Bytes, Status>;

    /// What the renderer would make of the encoded object, with an empty resourceVersion; `None` if it takes as much work.
    /// `text` is the object's JSON, if it was needed before; `before` is what it was made of.
    fn rendered(&self, _object: &Value, _text: Option<ObjectText>, _before: Option<Before<'_>>) -> Option<Rendered> {
        None
    }

    /// The bytes to store, where objects are stored as readers get them.
    fn as_served(&self, _object: &Value, _rendered: &Rendered) -> Option<Bytes> {
        None
    }

    /// The same of an object of which only that is at hand.
    fn as_prepared(&self, _rendered: &Rendered) -> Option<Bytes> {
        None
    }
}

/// An object before a change, with the values of its selectable fields.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    pub object: &'a Value,
    pub fields: &'a [Str],
}

/// What is known of an object that is going to be written.
pub(crate) struct Known<'a> {
    /// Its JSON, where admission had use for it.
    pub(crate) text: Option<ObjectText>,
    /// As what its write is going to be seen.
    pub(crate) kind: EventKind,
    /// It obeys all rules.
    pub(crate) is_judged: bool,
    /// What it was made of, if it is not new.
    pub(crate) before: Option<&'a Current>,
}

/// An object ready to be written.
pub(crate) struct Encoded {
    pub(crate) bytes: Bytes,
    /// What readers get: those of this server need not decode what it has written.
    pub(crate) draft: Option<Arc<Draft>>,
}

/// The version at which strategies and admission see objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkingVersion {
    /// One version for all requests, in which objects are cached, too: built-in kinds.
    One(GroupVersionKind),
    /// Each request's own: custom resources, whose schemas differ by version.
    Request,
}

pub struct Resource {
    pub descriptor: Arc<Descriptor>,
    pub strategy: Arc<dyn Strategy>,
    pub conversion: Arc<dyn Conversion>,
    pub encoder: Arc<dyn Encoder>,
    pub renderer: Arc<dyn Renderer>,
    pub admission: Arc<dyn Admission>,
    pub hub: Arc<Hub>,
    pub cache: Arc<ResourceCache>,
    pub clock: Arc<dyn Clock>,
    /// Where uids and generated names come from.
    pub made_up: MadeUp,
    pub working: WorkingVersion,
    /// The versions that clients can use, the preferred one first.
    pub served: Arc<[Str]>,
    /// `--enable-garbage-collector`: whether deletes may leave finalizers for it.
    pub garbage_collection: bool,
    /// Of updates that were overtaken.
    pub turns: Turns,
}

/// An object as it is stored now, at the working version of the call that reads it.
#[derive(Debug, Clone)]
pub struct Current {
    /// metadata.resourceVersion is set.
    pub object: Value,
    pub revision: i64,
    /// The stored bytes are not what would be written today: write even if nothing changes.
    pub stale: bool,
    /// The object as readers get it, if it is cached so.
    pub json: Option<Bytes>,
    /// Its selectable fields, if it is cached at this version.
    pub fields: Option<Box<[Str]>>,
}

impl Current {
    fn before(&self) -> Option<Before<'_>> {
        Some(Before { object: &self.object, fields: self.fields.as_deref()? })
    }
}

impl Resource {
    pub fn namespaced(&self) -> bool {
        self.descriptor.scope == Scope::Namespaced
    }

    pub fn has_status(&self, version: &str) -> bool {
        self.descriptor.version(version).is_some_and(|v| v.subresource("status").is_some())
    }

    /// The version strategies see for a call.
    pub fn working_kind(&self, call: &Call) -> GroupVersionKind {
        match &self.working {
            WorkingVersion::One(kind) => kind.clone(),
            WorkingVersion::Request => self.descriptor.gvk(&call.kind.version),
        }
    }

    /// The version in which objects are cached, unless they were written in another.
    pub fn cached_kind(&self) -> &GroupVersionKind {
        match &self.working {
            WorkingVersion::One(kind) => kind,
            WorkingVersion::Request => &self.descriptor.storage.kind,
        }
    }

    /// What admission is asked about objects of this resource.
    pub fn asks<'a>(
        &'a self,
        call: &'a Call,
        operation: Operation,
        old: Option<&'a Value>,
        options: Option<&'a Value>,
    ) -> Request<'a> {
        Request { old, options, resource: Some(self), ..Request::new(call, operation) }
    }

    pub async fn convert(&self, object: Value, to: &GroupVersionKind) -> Result<Value, Status> {
        if object.is_of(to) {
            return Ok(object);
        }
        self.conversion.convert(object, to).await
    }

    /// The key below the resource's prefix, with the reference's complaints about names.
    pub fn key(&self, namespace: &str, name: &str) -> Result<String, Status> {
        if self.namespaced() && namespace.is_empty() {
            return Err(Status::bad_request("Namespace parameter required."));
        }
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        if let Some(problem) = names::name_is_path_segment(name, NameUse::Full).first() {
            return Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {problem}")));
        }
        if !self.namespaced() {
            return Ok(name.to_owned());
        }
        let key = format!("{namespace}/{name}");
        if is_step(namespace) { Err(self.invalid_key(&key)) } else { Ok(key) }
    }

    /// Whether keys may begin with this namespace: a path segment that means another place cannot be stored.
    pub fn check_namespace(&self, namespace: &str) -> Result<(), Status> {
        if is_step(namespace) { Err(self.invalid_key(namespace)) } else { Ok(()) }
    }

    fn invalid_key(&self, key: &str) -> Status {
        let full = format!("/{}/{key}", self.descriptor.storage.prefix.trim_matches('/'));
        Status::unknown(format!("invalid key: {}", kubelith_meta::text::Quoted(&full)))
    }

    pub(crate) fn store_key(&self, key: &str) -> Bytes {
        Bytes::from(format!("{}{key}", self.hub.key_prefix(&self.descriptor.storage.prefix)))
    }

    /// As `put`, and tells the call how long that took.
    pub(crate) async fn put_for(
        &self,
        call: &Call,
        key: &str,
        encoded: Encoded,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> Result<Revision, StoreError> {
        let began = Instant::now();
        let written = self.put(key, encoded, expect, ttl).await;
        call.waited(Wait::Store, began.elapsed());
        written
    }

    /// Writes to the store.
    pub(crate) async fn put(
        &self,
        key: &str,
        encoded: Encoded,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> Result<Revision, StoreError> {
        let Encoded { bytes, draft } = encoded;
        let key = self.store_key(key);
        if let Some(draft) = draft {
            self.hub.add_pending_write(key.clone(), bytes.clone(), draft);
        }
        let written = self.hub.store().put(key.clone(), bytes, expect, ttl).await;
        match &written {
            Ok(revision) => self.hub.wrote(revision.0, self.read_by()),
            Err(_) => self.hub.drop_pending_write(&key),
        }
        written
    }

    /// Deletes from the store.
    pub(crate) async fn remove(&self, call: &Call, key: &str, expect: Expect) -> Result<Deleted, StoreError> {
        let began = Instant::now();
        let deleted = self.hub.store().delete(self.store_key(key), expect).await;
        call.waited(Wait::Store, began.elapsed());
        let deleted = deleted?;
        self.hub.wrote(deleted.revision.0, self.read_by());
        Ok(deleted)
    }

    /// Pods are written all the time, and nothing but a namespace is judged by them.
    fn read_by(&self) -> ReadBy {
        let Descriptor { group, plural, .. } = &*self.descriptor;
        if plural == "pods" && group.is_empty() { ReadBy::Clients } else { ReadBy::Admission }
    }

    /// How long the object lives from this write on: as the strategy says, or the operator.
    pub(crate) fn time_to_live(&self, object: &Value) -> Option<Duration> {
        self.strategy.time_to_live(object).or_else(|| self.hub.lifetime(&self.descriptor.storage.prefix))
    }

    /// Stored bytes of an object at the working version.
    pub(crate) async fn encode(&self, object: &mut Value, known: Known<'_>) -> Result<Encoded, Status> {
        let Known { text, kind, is_judged, before } = known;
        let link = object.remove_at(&["metadata", "selfLink"]);
        let mut text = text.filter(|_| link.is_none());
        let stored = &self.descriptor.storage.kind;
        if self.working == WorkingVersion::Request && !object.is_of(stored) {
            let mut object = self.convert(object.clone(), stored).await?;
            object.remove_at(&["metadata", "resourceVersion"]);
            return Ok(Encoded { bytes: self.encoder.encode(&object)?, draft: None });
        }
        let version = object.remove_at(&["metadata", "resourceVersion"]);
        let mut bytes = None;
        if let WorkingVersion::One(working) = &self.working
            && working != stored
        {
            // There and back: what the stored version cannot say, no reader will see.
            text = None;
            let there = self.convert(std::mem::take(object), stored).await?;
            bytes = Some(self.encoder.encode(&there));
            *object = self.convert(there, working).await?;
        }
        let rendered = self.encoder.rendered(object, text, before.and_then(Current::before));
        if bytes.is_none() {
            bytes = rendered.as_ref().and_then(|rendered| self.encoder.as_served(object, rendered)).map(Ok);
        }
        let bytes = bytes.unwrap_or_else(|| self.encoder.encode(object))?;
        if let Some(version) = version {
            object.set_at(&["metadata", "resourceVersion"], version);
        }
        let draft = rendered.map(|rendered| Draft::new(rendered, kind, self.hub.next_revision()).judged(is_judged));
        let draft = draft.map(Arc::new);
        let encoded = Encoded { bytes, draft };
        debug_assert!(self.reads_back(&encoded), "what is read back differs from what was written");
        Ok(encoded)
    }

    /// Whether readers get the object as it is now, but for its resourceVersion: neither another version nor the store takes anything
    /// off it.
    pub(crate) fn is_kept_as_is(&self, object: &Value) -> bool {
        object.is_of(&self.descriptor.storage.kind) && object.at(&["metadata", "selfLink"]).is_none()
    }

    /// Whether the renderer makes of the bytes what we say it does.
    pub(crate) fn reads_back(&self, Encoded { bytes, draft }: &Encoded) -> bool {
        let Some(draft) = draft else { return true };
        let Ok(read) = self.renderer.render(bytes, 0) else { return false };
        let same = draft.reads_as(&read);
        if !same {
            let read = String::from_utf8_lossy(&read.json);
            tracing::error!(?draft, %read, "an object changes on its way to the store");
        }
        same
    }

    /// What was written, as a reader finds it: a version that the object is not stored in shows what is left of it there.
    pub(crate) async fn as_stored(&self, call: &Call, object: Value) -> Result<Value, Status> {
        let working = self.working_kind(call);
        if working == self.descriptor.storage.kind || self.working != WorkingVersion::Request {
            return Ok(object);
        }
        let mut stored = self.convert(object, &self.descriptor.storage.kind).await?;
        // Readers get the defaults of the version that it is stored in.
        self.strategy.default_object(&self.descriptor.storage.kind.version, &mut stored);
        self.convert(stored, &working).await
    }

    /// The newest state of one object.
    pub(crate) async fn current(&self, call: &Call, key: &str) -> Result<Option<Current>, Status> {
        self.hub.fresh().await.map_err(|e| error::from_store(e, &call.resource, &call.name))?;
        let Some(cached) = self.cache.get(key) else { return Ok(None) };
        self.current_of(call, &cached).await.map(Some)
    }

    /// What a write can begin with: the newest state of one object that this server knows of. The store is not asked; others may have
    /// changed the object since, which the guard of the write tells. `None` if there is no such state, it cannot be read, or nothing
    /// will be written.
    pub(crate) async fn at_hand(&self, call: &Call, key: &str) -> Option<Current> {
        let cached = (!call.dry_run()).then(|| self.cache.get(key)).flatten()?;
        // What was written a moment ago is on its way to the cache.
        let recent = self.is_typed().then(|| self.hub.recent().since(&self.store_key(key), cached.revision + 1));
        match recent.flatten() {
            Some((revision, object)) => Some(Current { object, revision, stale: false, json: None, fields: None }),
            None => self.current_of(call, &cached).await.ok(),
        }
    }

    /// What became of an object that was at hand at `revision` (`None` inside: it is gone), if that is not its newest state.
    pub(crate) async fn newer(&self, call: &Call, key: &str, revision: i64) -> Result<Option<Option<Current>>, Status> {
        let newest = self.current(call, key).await?;
        let is_newer = newest.as_ref().is_none_or(|newest| newest.revision != revision);
        Ok(is_newer.then_some(newest))
    }

    /// The state that a failed guard reported.
    pub(crate) async fn current_of_kv(&self, call: &Call, kv: &kubelith_store::KeyValue) -> Result<Current, Status> {
        let revision = kv.mod_revision.0;
        let rendered = self.renderer.render(&kv.value, revision).map_err(Status::internal_error)?;
        let mut current = self.parse(call, &rendered.json.into(), revision).await?;
        current.stale |= kv.stale;
        Ok(current)
    }

    async fn current_of(&self, call: &Call, cached: &CachedObject) -> Result<Current, Status> {
        self.readable(cached)?;
        let json = cached.json();
        if !self.is_typed() {
            return self.parse(call, &json, cached.revision).await;
        }
        let mut current = match self.hub.recent().get(&self.store_key(&cached.key), cached.revision) {
            Some(object) => Current { object, revision: cached.revision, stale: false, json: None, fields: None },
            None => {
                let read = self.parse(call, &json, cached.revision).await?;
                if cached.is_judged {
                    mark_judged(&read.object);
                }
                read
            }
        };
        debug_assert!(
            json::parse_stored(&json).is_ok_and(|read| read == current.object),
            "what is kept of a write differs from what was written"
        );
        current.json = Some(json);
        current.fields = Some(cached.fields.clone());
        Ok(current)
    }

    /// Keeps what was changed for whoever changes it again. Not what is new: most of that is left alone, and to throw it
    /// away again takes as long as it would to read it.
    pub(crate) fn remember(
        &self,
        key: &str,
        revision: Revision,
        object: &mut Value,
        is_judged: bool,
        json: Option<&Bytes>,
    ) {
        if let Some(json) = json.filter(|_| self.is_typed() && has_plain_fields(object)) {
            object.seal();
            if is_judged {
                mark_judged(object);
            }
            self.hub.recent().put(self.store_key(key), revision.0, object.clone(), json.len());
        }
    }

    /// An error for an object that cannot be decrypted or decoded.
    pub fn readable(&self, cached: &CachedObject) -> Result<(), Status> {
        match &cached.broken {
            None => Ok(()),
            Some(broken) => {
                // Without the root, as the reference's registry knows its keys.
                let key = format!("/{}/{}", self.descriptor.storage.prefix, cached.key);
                Err(error::broken(self.hub.malformed(), &key, broken))
            }
        }
    }

    /// An error for a list that has such objects in it.
    pub fn all_readable<'a>(&self, objects: impl Iterator<Item = &'a Arc<CachedObject>>) -> Result<(), Status> {
        let root = self.hub.key_prefix(&self.descriptor.storage.prefix);
        let broken = objects.filter_map(|o| Some((format!("{root}{}", o.key), &**o.broken.as_ref()?)));
        error::broken_list(self.hub.malformed(), &self.descriptor.group_resource(), broken)
    }

    async fn parse(&self, call: &Call, json: &Bytes, revision: i64) -> Result<Current, Status> {
        let read = if self.is_typed() { json::parse_finished(json) } else { json::parse_stored(json) };
        let object = read.map_err(Status::internal_error)?;
        // An object that is stored in another version is written even if it does not change.
        let stale = self.working == WorkingVersion::Request
            && object.str_at(&["apiVersion"]) != self.descriptor.storage.kind.api_version();
        let object = self.convert(object, &self.working_kind(call)).await?;
        Ok(Current { object, revision, stale, json: None, fields: None })
    }

    /// Whether objects are read from the store as their type says, and not converted on the way.
    pub fn is_typed(&self) -> bool {
        let stored = &self.descriptor.storage;
        stored.encoding == Encoding::Protobuf
            && matches!(&self.working, WorkingVersion::One(kind) if *kind == stored.kind)
    }

    /// Waits until the cache is as new as `at` demands, then answers the object, with a revision that is
    /// consistent with its absence.
    pub async fn get(&self, call: &Call, at: ReadAt) -> Result<Option<Arc<CachedObject>>, Status> {
        let key = self.key(&call.namespace, &call.name)?;
        self.wait(at).await?;
        Ok(self.cache.get(&key))
    }

    /// The objects of the resource as `at` demands, and the revision to report for them.
    pub async fn snapshot(&self, at: ReadAt) -> Result<Snapshot, Status> {
        if let ReadAt::Exact(revision) = at {
            return self.snapshot_at(revision).await;
        }
        // The revision is read before the objects: they may be newer, never older, than it says. The
        // resource's own last change corrects it, so that a watch from here repeats nothing.
        let applied = self.wait(at).await?;
        let mut snapshot = self.cache.snapshot();
        snapshot.revision = snapshot.revision.max(applied);
        Ok(snapshot)
    }

    /// Whether the store has come so far; nobody waits until it has.
    pub async fn check_reached(&self, revision: u64) -> Result<(), Status> {
        self.wait(ReadAt::Exact(revision)).await.map(drop)
    }

    async fn wait(&self, at: ReadAt) -> Result<i64, Status> {
        match at {
            ReadAt::Latest => self.hub.fresh().await.map_err(error::from_read),
            ReadAt::AnyAge => Ok(self.hub.applied()),
            ReadAt::NotOlderThan(revision) => {
                // No store gets as far as the largest number, so what is beyond it is waited for the same way.
                if self.hub.wait_for(i64::try_from(revision).unwrap_or(i64::MAX)).await {
                    Ok(self.hub.applied())
                } else {
                    Err(error::too_large(revision, self.hub.applied()))
                }
            }
            // What the store does not have yet is not waited for.
            ReadAt::Exact(revision) => {
                let is_there = |now: i64| i64::try_from(revision).is_ok_and(|revision| revision <= now);
                let mut now = self.hub.applied();
                if !is_there(now) {
                    now = self.hub.fresh().await.map_err(error::from_read)?;
                }
                if is_there(now) { Ok(now) } else { Err(Status::too_large_resource_version(revision, now as u64, 0)) }
            }
        }
    }

    /// Lets watches begin after a revision that the cache does not have, if the store has all that happened since.
    pub async fn recall(&self, revision: i64) -> Result<(), Status> {
        match self.hub.recall(&self.descriptor.storage.prefix, revision).await {
            Ok(()) | Err(StoreError::Compacted { .. }) => Ok(()),
            Err(e) => Err(error::from_read(e)),
        }
    }

    async fn snapshot_at(&self, revision: u64) -> Result<Snapshot, Status> {
        self.wait(ReadAt::Exact(revision)).await?;
        // It was reached, so it is one of the store's.
        let revision = revision as i64;
        if let Ok(snapshot) = self.cache.snapshot_at(revision) {
            return Ok(snapshot);
        }
        // Older than the cache: the store may still have it.
        let prefix = self.hub.key_prefix(&self.descriptor.storage.prefix);
        let skip = prefix.len();
        let request = RangeRequest::new(KeyRange::prefix(prefix)).at(Revision(revision));
        let response = match self.hub.range_as_stored(request).await {
            Ok(response) => response,
            Err(StoreError::Compacted { .. }) => return Err(error::list_expired()),
            Err(e) => return Err(error::from_read(e)),
        };
        let mut objects = kubelith_store::cache::Objects::new();
        let mut odd = Oddities::default();
        for kv in response.items {
            let Some(object) = self.hub.read(&*self.renderer, skip, &kv).await else { continue };
            odd.add(&object);
            objects.insert(object.key.clone(), Arc::new(object));
        }
        Ok(Snapshot::new(objects, revision, odd))
    }
}

/// `.` and `..`, which lead elsewhere in a path.
fn is_step(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Whether the fields of its managers are text, as they are when an object is read.
fn has_plain_fields(object: &Value) -> bool {
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or(&[]);
    managers.iter().all(|manager| matches!(manager.get("fieldsV1"), Some(Value::Raw(_)) | None))
}

/// metadata.resourceVersion as a number; empty and "0" are 0. The error is the reference's.
pub fn resource_version_of(object: &Value) -> Result<i64, Status> {
    match object.str_at(&["metadata", "resourceVersion"]) {
        "" | "0" => Ok(0),
        text => text.parse::<u64>().map(|v| v as i64).map_err(|_| error::bad_resource_version(text)),
    }
}

pub fn set_resource_version(object: &mut Value, revision: i64) {
    object.set_at(&["metadata", "resourceVersion"], Value::String(Str::from(revision.to_string())));
}
