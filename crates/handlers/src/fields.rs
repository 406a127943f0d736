//! Who owns which field: managedFields of every write.

use super::context::Context;
use super::endpoint::{By, Endpoint, FieldTracker};
use super::options::WriteOptions;
use kubelith_codec::json::Strictness;
use kubelith_merge::apply::{ConvertError, Force, Versions};
pub use kubelith_merge::fieldset::Outlines;
use kubelith_merge::fieldset::{Filter, Set};
use kubelith_merge::managers::{ApplyError, Creations, FieldManager};
use kubelith_merge::typed::Type;
use kubelith_meta::{GroupVersion, GroupVersionKind, Status, Str, Value};
use kubelith_registry::{Part, Strategy, Working};
use kubelith_schema::{Descriptor, Encoding, Form, TypedSchema};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

impl Context {
    /// Notes what changed between `live`, if there is one, and `object`, both at the request's version.
    pub(super) fn track(&self, live: Option<&Value>, object: Working, options: &WriteOptions) -> Working {
        let manager = self.manager(&options.field_manager);
        self.endpoint.track(&self.by(&manager), live, object)
    }

    pub(super) fn by<'a>(&'a self, manager: &'a str) -> By<'a> {
        By { manager, subresource: &self.info.subresource, now: self.endpoint.resource.clock.now() }
    }
}

impl Endpoint {
    /// Notes what changed between `live`, if there is one, and `object`, both at the version of the endpoint.
    fn track(&self, by: &By<'_>, live: Option<&Value>, mut object: Working) -> Working {
        let Some(fields) = &self.fields else { return object };
        if object.form() == Form::Canonical {
            object.value = fields.update(by, live, object.value);
            return object;
        }
        // Nobody owns what is not printed, but rules look at it.
        let mut printed = object.value.clone();
        self.canonicalize_owned(&mut printed);
        let tracked = fields.update(by, live, printed);
        object.value.copy_at(&["metadata", "managedFields"], &tracked);
        object
    }

    /// What a create by this server itself makes of an object, up to where the registry goes on: completed, and owned by whom `by` says.
    pub fn own_create(&self, by: &By<'_>, object: Value) -> Result<Value, Status> {
        let decoded = self.decoder.take(object, Strictness::Lenient).map_err(Status::bad_request)?;
        let mut object = Working::new(decoded.object, decoded.form);
        self.complete(&mut object);
        let mut object = self.track(by, None, object);
        if self.is_as_stored() {
            object.seal();
        }
        Ok(object.value)
    }

    /// What becomes of an object, which may be new, by an apply of this server itself.
    pub fn own_apply(&self, by: &By<'_>, object: Value, patch: &Value) -> Result<Value, Status> {
        match &self.fields {
            Some(fields) => fields.apply(by, Some(&object), patch, Force::Yes),
            None => Ok(object),
        }
    }
}

/// Whether an object is stored with its managedFields. They can be as large as the object itself; if both together are
/// too much for the store, the object goes without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Kept,
    Dropped,
}

impl Ownership {
    pub(super) fn settle(self, object: &mut Value) {
        if self == Ownership::Dropped {
            object.remove_at(&["metadata", "managedFields"]);
        }
    }

    /// Whether a write failed for its size: it may go without managedFields.
    pub(super) fn is_too_much(status: &Status) -> bool {
        status.message.ends_with("etcdserver: request is too large")
            || status.message.contains("trying to send message larger than max")
    }
}

/// Brings an object to another `apiVersion` of its kind at once.
pub type ConvertNow = Arc<dyn Fn(Value, &GroupVersionKind) -> Result<Value, String> + Send + Sync>;

/// Field ownership of a resource whose versions the descriptor describes.
pub struct ResourceFields {
    descriptor: Arc<Descriptor>,
    kind: GroupVersionKind,
    convert: ConvertNow,
    strategy: Arc<dyn Strategy>,
    /// The versions that clients can use: who wrote in another one owns nothing any more.
    served: Arc<[Str]>,
    /// What writes of the resource itself cannot set, at every version; found when the first comes.
    reset: OnceLock<Vec<(Str, Filter)>>,
    outlines: Arc<Outlines>,
    creations: Creations,
}

impl ResourceFields {
    pub fn new(
        descriptor: Arc<Descriptor>,
        kind: GroupVersionKind,
        strategy: Arc<dyn Strategy>,
        served: Arc<[Str]>,
        convert: ConvertNow,
        outlines: Arc<Outlines>,
    ) -> ResourceFields {
        let (reset, creations) = (OnceLock::new(), Creations::default());
        ResourceFields { descriptor, kind, convert, strategy, served, reset, outlines, creations }
    }

    /// The fields that a write cannot set, at every version.
    fn reset_in(&self, part: Part<'_>) -> Vec<(Str, Filter)> {
        let fields = self.strategy.reset_fields(part);
        if fields.is_empty() {
            return Vec::new();
        }
        let paths: Vec<Vec<&str>> = fields.iter().map(|path| path.iter().map(Str::as_str).collect()).collect();
        let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
        self.in_all_versions(Filter::Exclude(Set::of_fields(&paths)))
    }

    /// The object as it reads once it is stored: an older version shows what conversion adds, and that is owned, too.
    fn as_stored(&self, object: Value) -> Value {
        let stored = &self.descriptor.storage;
        if stored.encoding != Encoding::Protobuf || stored.kind == self.kind {
            return object;
        }
        let there = (self.convert)(object.clone(), &stored.kind);
        there.and_then(|there| (self.convert)(there, &self.kind)).unwrap_or(object)
    }

    fn in_all_versions(&self, filter: Filter) -> Vec<(Str, Filter)> {
        let version =
            |name: &Str| Str::from(GroupVersion::new(self.descriptor.group.clone(), name.clone()).to_string());
        self.descriptor.versions.iter().map(|v| (version(&v.name), filter.clone())).collect()
    }

    fn with_manager<T>(&self, subresource: &str, run: impl FnOnce(&FieldManager<'_>) -> T) -> T {
        let (reset, creations) = match Part::of(subresource) {
            part @ Part::Main => {
                (Cow::Borrowed(&self.reset.get_or_init(|| self.reset_in(part))[..]), Some(&self.creations))
            }
            part => (Cow::Owned(self.reset_in(part)), None),
        };
        let outlines = Some(&*self.outlines);
        run(&FieldManager { versions: self, kind: self.kind.clone(), subresource, reset: &reset, outlines, creations })
    }
}

impl Versions for ResourceFields {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        let parsed = GroupVersion::parse(version)?;
        if parsed.group != self.descriptor.group {
            return None;
        }
        self.descriptor.version(&parsed.version).filter(|v| self.served.contains(&v.name)).map(|v| Type::of(&v.schema))
    }

    fn are_decoded_by_type(&self) -> bool {
        self.descriptor.storage.encoding == Encoding::Protobuf
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, ConvertError> {
        let parsed = GroupVersion::parse(version).ok_or(ConvertError::MissingVersion)?;
        if self.type_in(version).is_none() {
            return Err(ConvertError::MissingVersion);
        }
        (self.convert)(object.clone(), &parsed.with_kind(self.kind.kind.clone())).map_err(ConvertError::Failed)
    }
}

impl FieldTracker for ResourceFields {
    fn update(&self, by: &By<'_>, live: Option<&Value>, object: Value) -> Value {
        let object = self.as_stored(object);
        self.with_manager(by.subresource, |m| m.update(live, object, by.manager, by.now))
    }

    fn apply(&self, by: &By<'_>, live: Option<&Value>, patch: &Value, force: Force) -> Result<Value, Status> {
        let applied = self.with_manager(by.subresource, |m| m.apply(live, patch, by.manager, force, by.now));
        applied.map(|outcome| outcome.object).map_err(|e: ApplyError| e.into())
    }
}

/// Field ownership of a kind of which nothing is stored: there is one version, and no field that cannot be set.
pub struct KindFields<'a> {
    pub kind: GroupVersionKind,
    pub schema: &'a TypedSchema,
}

impl KindFields<'_> {
    /// Notes the creator's fields.
    pub fn create(&self, by: &By<'_>, object: Value) -> Value {
        let (kind, subresource) = (self.kind.clone(), by.subresource);
        let manager = FieldManager { versions: self, kind, subresource, reset: &[], outlines: None, creations: None };
        manager.update(None, object, by.manager, by.now)
    }
}

impl Versions for KindFields<'_> {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        (version == self.kind.api_version()).then(|| Type::of(self.schema))
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, ConvertError> {
        match self.type_in(version) {
            Some(_) => Ok(object.clone()),
            None => Err(ConvertError::MissingVersion),
        }
    }
}
