//! A resource as OpenAPI needs to know it.

use super::schemas::gvk;
use super::words::Words;
use super::{Dialect, meta};
use kubelith_codec::negotiate::{BUILT_IN, Format, media_types, stream_media_types};
use kubelith_meta::{GroupVersionKind, Str, Value};
use kubelith_schema::{Descriptor, Version};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The schema of a custom resource, made when a document needs it. It refers to ObjectMeta and to nothing else.
pub type Written = Arc<dyn Fn(Dialect, &Words) -> Value + Send + Sync>;

/// A resource in one of its versions.
#[derive(Clone)]
pub struct Published {
    pub descriptor: Arc<Descriptor>,
    pub version_index: usize,
    pub delete_answer: DeleteAnswer,
    pub detail: Detail,
    /// The schema of its objects if it is not a type of the catalogue.
    pub written: Option<Written>,
    /// What its types are called where the names that they would have are others'.
    pub renamed: Renamed,
}

/// Names in place of those of a resource's types.
#[derive(Debug, Clone, Default)]
pub struct Renamed {
    pub(super) model: Option<Str>,
    pub(super) list: Option<Str>,
}

/// What a successful DELETE answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteAnswer {
    Object,
    Status,
}

/// How much is said about the operations of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Full,
    /// As custom resources are described: no watches, no strategic merge patch, no protobuf.
    Brief,
}

impl Published {
    pub fn version(&self) -> &Version {
        &self.descriptor.versions[self.version_index]
    }

    /// The OpenAPI name of its objects' type.
    pub fn model(&self) -> Str {
        self.renamed.model.clone().unwrap_or_else(|| self.own_model())
    }

    fn own_model(&self) -> Str {
        let known = self.version().schema.root_struct().map(|s| s.name.clone()).filter(|n| !n.is_empty());
        known.unwrap_or_else(|| {
            let group = self.descriptor.group.rsplit('.').collect::<Vec<_>>().join(".");
            format!("{group}.{}.{}", self.version().name, self.descriptor.kind).into()
        })
    }

    /// The OpenAPI name of its lists' type, which stands beside that of the objects.
    pub fn list_model(&self) -> Str {
        if let Some(renamed) = &self.renamed.list {
            return renamed.clone();
        }
        let model = self.own_model();
        let package = model.strip_suffix(self.descriptor.kind.as_str()).unwrap_or_default();
        format!("{package}{}", self.descriptor.list_kind).into()
    }

    /// With `name_v2` (or the next that is free) for each of its types whose name is another type's.
    pub(super) fn beside(&self, taken: &BTreeSet<Str>) -> Published {
        let free = |name: Str| -> Option<Str> {
            taken.contains(&name).then(|| {
                let mut numbered = (2_u64..).map(|i| Str::from(format!("{name}_v{i}")));
                numbered.find(|other| !taken.contains(other)).unwrap_or_default()
            })
        };
        let renamed = Renamed { model: free(self.model()), list: free(self.list_model()) };
        Published { renamed, ..self.clone() }
    }

    pub(super) fn is_brief(&self) -> bool {
        self.detail == Detail::Brief
    }

    fn formats(&self) -> &'static [Format] {
        match self.detail {
            Detail::Full => BUILT_IN,
            Detail::Brief => &[Format::Json, Format::Yaml],
        }
    }

    pub(super) fn media_types(&self) -> Vec<&'static str> {
        media_types(self.formats())
    }

    pub(super) fn stream_media_types(&self) -> Vec<&'static str> {
        match self.detail {
            Detail::Full => stream_media_types(self.formats()),
            Detail::Brief => Vec::new(),
        }
    }

    /// What bodies are, but for patches.
    pub(super) fn consumes(&self) -> Vec<&'static str> {
        match self.detail {
            Detail::Full => vec!["*/*"],
            Detail::Brief => self.media_types(),
        }
    }
}

/// Where a schema that is no type of the catalogue comes from. It is written when its turn comes: those of all
/// custom resources together may be too much.
pub(super) enum Source {
    Object(Str, Written),
    List(Published),
}

impl Source {
    pub fn write(&self, dialect: Dialect, words: &Words) -> Value {
        match self {
            Source::Object(_, written) => written(dialect, words),
            Source::List(resource) => list(resource, dialect, words),
        }
    }

    /// The names of other schemas that stand in it.
    pub fn refers_to(&self) -> [Str; 2] {
        match self {
            Source::Object(name, _) => [name.clone(), meta::OBJECT_META.into()],
            Source::List(resource) => [resource.model(), meta::LIST_META.into()],
        }
    }
}

/// The schemas that come with resources instead of from the catalogue, by name: objects and their lists.
pub(super) fn written(published: &[Published]) -> impl Iterator<Item = (Str, Source)> {
    published.iter().filter_map(|resource| Some((resource, resource.written.clone()?))).flat_map(
        |(resource, written)| {
            let object = Source::Object(resource.model(), written);
            [(resource.list_model(), Source::List(resource.clone())), (resource.model(), object)]
        },
    )
}

fn list(resource: &Published, dialect: Dialect, words: &Words) -> Value {
    let descriptor = &resource.descriptor;
    let item = Value::from([("$ref", dialect.reference(&resource.model()))]);
    let kind =
        GroupVersionKind::new(descriptor.group.clone(), resource.version().name.clone(), descriptor.list_kind.clone());
    let text = |description: &str| Value::from([("description", description), ("type", "string")]);
    let reference = Value::from([("$ref", dialect.reference(meta::LIST_META))]);
    let mut metadata = match dialect {
        Dialect::V2 => reference,
        Dialect::V3 => Value::from([("allOf", Value::Array(vec![reference]))]),
    };
    let conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    metadata.set_at(&["description"], format!("Standard list metadata. More info: {conventions}#types-kinds").into());
    let items = Value::from([
        ("description", Value::from(format!("List of {}. More info: {conventions}", descriptor.plural))),
        ("items", item),
        ("type", Value::from("array")),
    ]);
    let properties = Value::from([
        ("apiVersion", text(words.of_every_object("apiVersion"))),
        ("items", items),
        ("kind", text(words.of_every_object("kind"))),
        ("metadata", metadata),
    ]);
    Value::from([
        ("description", Value::from(format!("{} is a list of {}", descriptor.list_kind, descriptor.kind))),
        ("properties", properties),
        ("required", Value::Array(vec!["items".into()])),
        ("type", "object".into()),
        ("x-kubernetes-group-version-kind", Value::Array(vec![gvk(&kind)])),
    ])
}
