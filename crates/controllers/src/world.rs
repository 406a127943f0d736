//! What controllers see of the server: which resources there are, and their watch caches.

use futures::future::BoxFuture;
use kubelith_meta::{GroupResource, GroupVersion, GroupVersionResource, Str};
use kubelith_store::cache::ResourceCache;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

pub trait World: Send + Sync {
    /// The watch cache of a built-in resource, if it is served.
    fn cache(&self, group: &str, plural: &str) -> Option<Arc<ResourceCache>>;

    /// The watch cache of a built-in or custom resource; `None` for what another server has.
    fn cache_of<'a>(&'a self, resource: &'a GroupResource) -> BoxFuture<'a, Option<Arc<ResourceCache>>>;

    /// All resources that are served now, here or elsewhere.
    fn discover(&self) -> Discovered;

    /// Tells that `discover` may say something else.
    fn discovery_changes(&self) -> watch::Receiver<()>;
}

/// A resource in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub resource: GroupVersionResource,
    pub kind: Str,
    pub namespaced: bool,
    pub verbs: Vec<Str>,
}

impl Known {
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    pub fn api_version(&self) -> Str {
        self.resource.group_version().to_string().into()
    }
}

/// What discovery tells.
#[derive(Debug, Clone, Default)]
pub struct Discovered {
    /// Group by group, versions that are preferred first.
    pub resources: Vec<Known>,
    /// Versions of extension servers that do not answer.
    pub stale: Vec<GroupVersion>,
}

impl Discovered {
    /// Each resource once, in the version that its group prefers.
    pub fn preferred(&self) -> Vec<&Known> {
        let mut seen = BTreeMap::new();
        for (i, known) in self.resources.iter().enumerate() {
            seen.entry((&known.resource.group, &known.resource.resource)).or_insert(i);
        }
        let mut places: Vec<usize> = seen.into_values().collect();
        places.sort_unstable();
        places.into_iter().map(|i| &self.resources[i]).collect()
    }

    /// What serves a kind in the version that somebody names.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Known> {
        let gv = GroupVersion::parse(api_version)?;
        let fits = |r: &&Known| r.resource.group == gv.group && r.resource.version == gv.version && r.kind == kind;
        self.resources.iter().find(fits)
    }

    /// How client-go words that some groups could not be asked for.
    pub fn failure(&self) -> Option<String> {
        let mut groups: Vec<String> =
            self.stale.iter().map(|gv| format!("{gv}: stale GroupVersion discovery: {gv}")).collect();
        groups.sort();
        let all = || format!("unable to retrieve the complete list of server APIs: {}", groups.join(", "));
        (!groups.is_empty()).then(all)
    }
}
