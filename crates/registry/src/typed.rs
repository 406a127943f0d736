//! Stored bytes of built-in kinds: protobuf in kube-apiserver's envelope, or JSON; what readers get, where nobody else reads the store.

use crate::resource::{Before, Encoder, set_resource_version};
use crate::served;
use crate::strategy::Strategy;
use bytes::Bytes;
use kubelith_catalog::Catalog;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::object::{ObjectText, object_json, versioned_json};
use kubelith_codec::{proto, typed, yaml};
use kubelith_meta::{GroupVersion, GroupVersionKind, Status, Str, Value};
use kubelith_schema::canonical::{Empties, canonicalize};
use kubelith_schema::{Descriptor, Encoding, SelectableField, TypedSchema};
use kubelith_store::cache::{Rendered, Renderer};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What encoding and rendering the objects of one built-in resource follow: the same for all servers that store it in the same way.
pub struct TypedShape {
    catalog: &'static Catalog,
    /// In which objects are stored.
    kind: GroupVersionKind,
    schema: TypedSchema,
    /// In which they are cached.
    working: GroupVersionKind,
    working_schema: TypedSchema,
    encoding: Encoding,
    selectable: Vec<SelectableField>,
}

impl TypedShape {
    /// `None` if the versions in which objects are stored and cached have no type in the catalogue.
    pub fn new(catalog: &'static Catalog, descriptor: &Descriptor, working: &GroupVersionKind) -> Option<TypedShape> {
        let kind = descriptor.storage.kind.clone();
        // The fields of the stored version; a group that stores as another's kind selects by that one's.
        let stored = catalog.descriptor(&descriptor.storage.resource.group, &descriptor.storage.resource.resource);
        let selectable =
            stored.and_then(|d| d.version(&kind.version)).map(|v| v.selectable.clone()).unwrap_or_default();
        Some(TypedShape {
            catalog,
            schema: catalog.kind_schema(&kind)?,
            working_schema: catalog.kind_schema(working)?,
            working: working.clone(),
            kind,
            encoding: descriptor.storage.encoding,
            selectable,
        })
    }

    /// Where a selectable field stands among the fields that the cache keeps.
    pub fn selectable_index(&self, name: &str) -> Option<usize> {
        self.selectable.iter().position(|f| f.name == name)
    }
}

/// Encodes and renders the objects of one built-in resource.
pub struct TypedCodec {
    shape: Arc<TypedShape>,
    /// Set where objects are stored as readers get them: the number of the rules by which they are completed.
    rules: Option<u64>,
    strategy: Arc<dyn Strategy>,
}

impl TypedCodec {
    pub fn new(shape: Arc<TypedShape>, strategy: Arc<dyn Strategy>) -> TypedCodec {
        TypedCodec { shape, rules: None, strategy }
    }

    /// Stores objects as readers get them, which only this program understands, completed by the rules of this number. Where
    /// JSON was asked for, that is stored.
    #[must_use]
    pub fn as_served(self, rules: Option<u64>) -> TypedCodec {
        TypedCodec { rules: rules.filter(|_| self.shape.encoding == Encoding::Protobuf), ..self }
    }

    /// The object at the working version, as it would be written today.
    fn decode(&self, stored: &[u8]) -> Result<Value, String> {
        let object = if stored.starts_with(proto::PREFIX) {
            let envelope = proto::Envelope::read(stored).map_err(|e| e.to_string())?;
            let kind = envelope.type_meta.with_defaults(&self.shape.kind).map_err(|e| e.to_string())?;
            let schema = self.schema_of(&kind)?;
            typed_object(proto::decode(envelope.raw, &schema).map_err(|e| e.to_string())?, &kind)
        } else {
            let json = as_json(stored)?;
            let stored = json.as_ref();
            let kind =
                json::type_meta(stored).and_then(|m| m.with_defaults(&self.shape.kind)).map_err(|e| e.to_string())?;
            let schema = self.schema_of(&kind)?;
            let decoded = typed::decode(stored, &schema, Strictness::Lenient).map_err(|e| e.to_string())?;
            typed_object(decoded.value, &kind)
        };
        let mut object = self.to_working_version(object)?;
        self.strategy.default_object(&self.shape.working.version, &mut object);
        self.strategy.complete_read(&mut object);
        let empties = match self.shape.encoding {
            Encoding::Protobuf => Empties::Absent,
            Encoding::Json => Empties::Distinct,
        };
        canonicalize(&self.shape.working_schema.table, &self.shape.working_schema.root, &mut object, empties);
        Ok(object)
    }

    fn schema_of(&self, kind: &GroupVersionKind) -> Result<TypedSchema, String> {
        if *kind == self.shape.kind {
            return Ok(self.shape.schema.clone());
        }
        self.shape
            .catalog
            .kind_schema(kind)
            .ok_or_else(|| format!("no kind \"{}\" is registered for version \"{}\"", kind.kind, kind.group_version()))
    }

    fn to_working_version(&self, mut object: Value) -> Result<Value, String> {
        if object.str_at(&["apiVersion"]) == self.shape.working.api_version() {
            return Ok(object);
        }
        let from =
            GroupVersion::parse(object.str_at(&["apiVersion"])).unwrap_or_default().with_kind(object.str_at(&["kind"]));
        if from == self.shape.kind {
            // The working version may mean something else by what is not there.
            self.strategy.default_object(&from.version, &mut object);
        }
        kubelith_catalog::convert(object, &from, &self.shape.working).map_err(|e| e.to_string())
    }
}

impl TypedCodec {
    /// Whether an object that is stored as served is what would be read if it had been stored as protobuf.
    fn is_complete(&self, object: &Value, served: &[u8]) -> bool {
        let protobuf = self.encode(object).ok().and_then(|bytes| self.render(&bytes, 0).ok());
        protobuf.is_some() && protobuf == self.render(served, 0).ok()
    }
}

/// kube-apiserver can be told to store YAML.
fn as_json(stored: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    match stored.first() {
        Some(b'{') => Ok(Cow::Borrowed(stored)),
        _ if served::is_served(stored) => served::json(stored).map(Cow::Borrowed),
        _ => Ok(Cow::Owned(json::to_vec(&yaml::read(stored).map_err(|e| e.to_string())?.value))),
    }
}

/// apiVersion and kind are not part of the messages.
fn typed_object(mut object: Value, kind: &GroupVersionKind) -> Value {
    let map = object.make_object();
    map.insert("apiVersion", kind.api_version());
    map.insert("kind", kind.kind.clone());
    object
}

impl Renderer for TypedCodec {
    fn render(&self, value: &[u8], revision: i64) -> Result<Rendered, String> {
        if let Some(rules) = self.rules.filter(|_| served::is_served(value))
            && let Some(rendered) = served::rendered(value, rules, revision)?
        {
            return Ok(rendered);
        }
        let mut object = self.decode(value)?;
        set_resource_version(&mut object, revision);
        Ok(render(&object, &self.shape.selectable))
    }
}

impl Encoder for TypedCodec {
    fn rendered(&self, object: &Value, text: Option<ObjectText>, before: Option<Before<'_>>) -> Option<Rendered> {
        // What is read from JSON has the empty fields of Go's structs. A conversion gives them to the object, too.
        let complete = self.shape.encoding == Encoding::Protobuf || self.shape.working != self.shape.kind;
        let is_known = text.is_some();
        let text = complete.then(|| text.unwrap_or_else(|| ObjectText::new(object)))?;
        let (json, version) = text.unversioned()?;
        let fields = self.shape.selectable.iter().enumerate().map(|(i, field)| {
            let unchanged = before.and_then(|before| before.unchanged(i, field, object));
            unchanged.cloned().unwrap_or_else(|| select(object, field))
        });
        debug_assert!(
            fields.clone().eq(self.shape.selectable.iter().map(|field| select(object, field))),
            "selectable fields are others than before"
        );
        debug_assert!(
            !is_known || ObjectText::new(object).unversioned().is_some_and(|(made, _)| made == json),
            "admission had the JSON of another object"
        );
        Some(rendered(object, json, Some(version), fields))
    }

    fn as_served(&self, object: &Value, rendered: &Rendered) -> Option<Bytes> {
        let bytes = served::write(self.rules?, rendered)?;
        debug_assert!(self.is_complete(object, &bytes), "an object is not what would be read of its protobuf");
        Some(bytes)
    }

    fn as_prepared(&self, rendered: &Rendered) -> Option<Bytes> {
        served::write(self.rules?, rendered)
    }

    fn encode(&self, object: &Value) -> Result<Bytes, Status> {
        match self.shape.encoding {
            // The store keeps these bytes, and so no more than these.
            Encoding::Protobuf => {
                let message = proto::to_vec(object, &self.shape.schema).map_err(Status::internal_error)?;
                Ok(Bytes::copy_from_slice(&message))
            }
            // Go's encoder ends a document with a line feed.
            Encoding::Json => {
                let mut json = object_json(object);
                json.push(b'\n');
                Ok(json.into())
            }
        }
    }
}

/// What the cache keeps of an object.
pub fn render(object: &Value, selectable: &[SelectableField]) -> Rendered {
    let (json, version) = versioned_json(object);
    rendered(object, json, version, selectable.iter().map(|field| select(object, field)))
}

fn rendered(
    object: &Value,
    json: Vec<u8>,
    version: Option<Range<usize>>,
    fields: impl Iterator<Item = Str>,
) -> Rendered {
    let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flat_map(|m| m.iter());
    Rendered {
        json,
        version,
        labels: labels.filter_map(|(k, v)| Some((Str::from(k), Str::from(v.as_str()?)))).collect(),
        fields: fields.collect(),
        is_foreign: false,
    }
}

impl<'a> Before<'a> {
    /// The value of a field that stands in a part of the object that nobody touched. Such a part may be text that nobody has looked
    /// into, and stays so.
    fn unchanged(self, index: usize, field: &SelectableField, object: &Value) -> Option<&'a Str> {
        let is_same = |path: &str| {
            let part = path.trim_start_matches('.').split('.').next();
            path.is_empty() || part.is_some_and(|part| object.shares(part, self.object))
        };
        let is_unchanged = is_same(&field.path) && field.fallback.as_deref().is_none_or(is_same);
        self.fields.get(index).filter(|_| is_unchanged)
    }
}

/// The value of a selectable field as text.
pub fn select(object: &Value, field: &SelectableField) -> Str {
    let found = |path: &str| {
        if path.is_empty() {
            return None;
        }
        let value = path.trim_start_matches('.').split('.').try_fold(object, |v, key| v.get(key))?;
        match value {
            Value::String(s) if s.is_empty() => None,
            Value::String(s) => Some(s.clone()),
            Value::Bool(b) => Some(Str::from(if *b { "true" } else { "false" })),
            Value::Int(i) => Some(Str::from(i.to_string())),
            _ => None,
        }
    };
    found(&field.path).or_else(|| field.fallback.as_deref().and_then(found)).unwrap_or_else(|| field.absent.clone())
}
