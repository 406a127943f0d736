//! Discovery: which groups, versions and resources there are. One model, two wire forms: a document per group
//! and version (`documents`), and everything in one (`aggregated`).

mod aggregated;
mod documents;
mod peers;
mod serve;

pub use peers::{PeerCounts, PeerGroups};
pub use serve::{Discovery, Entry, Source};

use kubelith_meta::{GroupVersionKind, Str, Value};
use kubelith_schema::{Descriptor, Scope};
use std::sync::Arc;

/// A group with its versions, the preferred one first.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Empty for the core group.
    pub name: Str,
    pub versions: Vec<GroupVersion>,
}

#[derive(Debug, Clone, Default)]
pub struct GroupVersion {
    pub name: Str,
    pub resources: Arc<[Resource]>,
    pub freshness: Freshness,
    /// The version as another server describes it (an APIVersionDiscovery), instead of `resources`.
    pub described: Option<Arc<Value>>,
}

/// Whether a version's list of resources is known to be true now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Freshness {
    #[default]
    Current,
    /// An extension server that does not answer: what it said last.
    Stale,
}

/// A resource of one version.
#[derive(Debug, Clone)]
pub struct Resource {
    pub plural: Str,
    pub singular: Str,
    pub kind: Str,
    pub scope: Scope,
    pub verbs: Vec<Str>,
    pub short_names: Vec<Str>,
    pub categories: Vec<Str>,
    /// The kind it is stored as; `None` for what is never stored.
    pub stored_as: Option<GroupVersionKind>,
    pub subresources: Vec<Subresource>,
}

#[derive(Debug, Clone)]
pub struct Subresource {
    pub name: Str,
    pub kind: GroupVersionKind,
    pub verbs: Vec<Str>,
}

impl Resource {
    /// What discovery says of a descriptor at one of its versions.
    pub fn of(descriptor: &Descriptor, version: usize) -> Resource {
        let version = &descriptor.versions[version];
        let mut subresources: Vec<Subresource> = version
            .subresources
            .iter()
            .map(|s| Subresource { name: s.name.clone(), kind: s.kind.clone(), verbs: s.verbs.clone() })
            .collect();
        subresources.sort_by(|a, b| a.name.cmp(&b.name));
        let stored = !descriptor.storage.prefix.is_empty();
        Resource {
            plural: descriptor.plural.clone(),
            singular: descriptor.singular.clone(),
            kind: descriptor.kind.clone(),
            scope: descriptor.scope,
            verbs: version.verbs.clone(),
            short_names: descriptor.short_names.clone(),
            categories: descriptor.categories.clone(),
            stored_as: stored.then(|| descriptor.storage.kind.clone()),
            subresources,
        }
    }
}
