//! What the texts say, linked: names resolved to types, the versions of a resource put together. Known to the
//! build script and to tests.

use crate::api::Api;
use kubelith_meta::{GroupVersionKind, Str};
use kubelith_schema::{
    Column, Deprecation, Scope, SelectableField, ServedReleases, Storage, StructType, TypeId, Unselectable,
};

pub struct Model {
    pub types: Vec<StructType>,
    /// In the order of discovery.
    pub apis: Vec<Api>,
    /// Sorted.
    pub kinds: Vec<(GroupVersionKind, TypeId)>,
    /// Kinds that every group version has (DeleteOptions and its like). Sorted.
    pub everywhere: Vec<(Str, TypeId)>,
    /// In the order of discovery: by API, then by name.
    pub resources: Vec<Resource>,
}

pub struct Resource {
    pub group: Str,
    pub plural: Str,
    pub singular: Str,
    pub kind: Str,
    pub list_kind: Str,
    pub scope: Scope,
    pub short_names: Vec<Str>,
    pub categories: Vec<Str>,
    pub storage: Storage,
    /// The preferred one first.
    pub versions: Vec<ResourceVersion>,
}

pub struct ResourceVersion {
    pub name: Str,
    pub schema: TypeId,
    /// The feature gate without which it is not served.
    pub gate: Option<Str>,
    pub verbs: Vec<Str>,
    pub subresources: Vec<Subresource>,
    pub columns: Vec<Column>,
    pub selectable: Vec<SelectableField>,
    pub unselectable: Unselectable,
    pub deprecation: Option<Deprecation>,
    pub releases: ServedReleases,
}

pub struct Subresource {
    pub name: Str,
    pub kind: GroupVersionKind,
    /// The type of `kind` if it is not the parent's.
    pub schema: Option<TypeId>,
    pub verbs: Vec<Str>,
    pub accepted: Vec<GroupVersionKind>,
}
