//! One resource at one version, as the verbs serve it.

use super::body::Decoder;
use super::subresource_view::SubresourceView;
use crate::cells::Cells;
use crate::options::InitialEvents;
use kubelith_codec::negotiate::Format;
use kubelith_merge::apply::Force;
use kubelith_meta::time::Time;
use kubelith_meta::{GroupVersionKind, Status, Str, Value};
use kubelith_registry::Resource;
use kubelith_schema::{Column, Encoding, TypedSchema, Version};
use std::sync::Arc;
use std::time::Duration;

pub struct Endpoint {
    pub resource: Arc<Resource>,
    /// Set if this is a view of the resource's objects, of the kind below.
    pub view: Option<Arc<dyn SubresourceView>>,
    /// Index into the descriptor's versions.
    pub version_index: usize,
    pub kind: GroupVersionKind,
    /// What objects can be sent and received as.
    pub formats: &'static [Format],
    /// Whether apiVersion and kind stand in each item of a list.
    pub items: ListItems,
    pub decoder: Arc<dyn Decoder>,
    /// Who owns which field; `None` if that is not kept, and then there is no apply.
    pub fields: Option<Arc<dyn FieldTracker>>,
    /// Whether strategic merge patches are taken.
    pub strategic: bool,
    pub cells: Arc<dyn Cells>,
    pub limits: Limits,
}

/// Who writes, through what, and when.
pub struct By<'a> {
    pub manager: &'a str,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    pub now: Time,
}

/// Keeps metadata.managedFields of one version of a resource, or of one of its subresources.
pub trait FieldTracker: Send + Sync + 'static {
    /// The object of a create (`live` is `None`) or update, with what changed noted under the manager.
    fn update(&self, by: &By<'_>, live: Option<&Value>, object: Value) -> Value;

    /// Server-side apply of `patch` to `live` (`None`: it is to be created).
    fn apply(&self, by: &By<'_>, live: Option<&Value>, patch: &Value, force: Force) -> Result<Value, Status>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListItems {
    /// Typed lists: the list's kind says what its items are.
    WithoutType,
    /// Custom resources.
    WithType,
}

/// Settings that verbs share.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// `--max-request-body-bytes`: 3 MiB as in the reference.
    pub body_bytes: usize,
    /// `--min-request-timeout`: a watch without timeoutSeconds lasts this to twice this long.
    pub min_request_timeout: Duration,
    /// Objects of a collection that are deleted at the same time.
    pub delete_collection_workers: usize,
    /// Large answers are compressed for who takes that (APIResponseCompression).
    pub compresses: bool,
    /// Lists of any age have pages, no revision is waited for, and watches begin wherever the store can (`--watch-cache=false`): the
    /// reference's watch cache answers such lists whole, waits, and begins with the server.
    pub pages_any_age: bool,
    pub initial_events: InitialEvents,
    /// Clients may ask for a part of all objects (ShardedListAndWatch).
    pub shards: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 3 << 20,
            min_request_timeout: Duration::from_secs(1800),
            delete_collection_workers: 1,
            compresses: true,
            pages_any_age: false,
            initial_events: InitialEvents::Served,
            shards: false,
        }
    }
}

impl Endpoint {
    pub fn version(&self) -> &Version {
        &self.resource.descriptor.versions[self.version_index]
    }

    pub fn version_name(&self) -> &Str {
        &self.version().name
    }

    /// Schema of what is sent and received here.
    pub fn schema(&self) -> &TypedSchema {
        self.view.as_ref().map_or(&self.version().schema, |view| view.schema())
    }

    /// Columns of a table of what is sent here.
    pub fn columns(&self) -> &[Column] {
        self.view.as_ref().map_or(&self.version().columns, |view| view.columns())
    }

    /// Whether objects are sent and received here as they are stored: by their types, and in the same version.
    pub fn is_as_stored(&self) -> bool {
        let stored = &self.resource.descriptor.storage;
        stored.encoding == Encoding::Protobuf && stored.kind == self.kind
    }

    /// The kind of the stored object, at the version in the URL.
    pub fn object_kind(&self) -> GroupVersionKind {
        if self.view.is_none() { self.kind.clone() } else { self.resource.descriptor.gvk(self.version_name()) }
    }

    pub fn list_kind(&self) -> &Str {
        &self.resource.descriptor.list_kind
    }
}
