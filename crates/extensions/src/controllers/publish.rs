//! Tells the world which custom resources there are: discovery and OpenAPI, group version by group version.

use super::index::{Index, Known, Touched};
use crate::openapi;
use kubelith_meta::GroupVersion;
use kubelith_server::discovery::{Discovery, Entry, GroupVersion as DiscoveredVersion, Resource, Source};
use kubelith_server::openapi::{OpenApi, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;

/// Of groups of custom resources among all groups.
const GROUP_PRIORITY: i32 = 1000;
const VERSION_PRIORITY: i32 = 100;

pub struct Publisher {
    pub discovery: Arc<Discovery>,
    pub openapi: Arc<OpenApi>,
    /// The group versions that definitions serve.
    pub versions: watch::Sender<Arc<BTreeSet<GroupVersion>>>,
}

impl Publisher {
    /// Publishes what changed.
    pub fn publish(&self, index: &Index, touched: &Touched) {
        if touched.is_empty() {
            return;
        }
        let all = index.all();
        self.discovery.set(Source::CustomResources, entries(&all));
        let mut gone = Vec::new();
        let mut subjects = Vec::new();
        for gv in touched {
            let resources: Vec<_> = all.iter().filter_map(|known| openapi::published(known, gv)).collect();
            match resources.is_empty() {
                true => gone.push(Subject::Version(gv.clone(), Vec::new()).path()),
                false => subjects.push(Subject::Version(gv.clone(), resources)),
            }
        }
        self.openapi.put(subjects);
        self.openapi.remove(gone.iter().map(String::as_str));
        let now = index.group_versions();
        self.versions.send_if_modified(|versions| {
            let changed = **versions != now;
            if changed {
                *versions = Arc::new(now);
            }
            changed
        });
    }
}

fn entries(all: &[Known]) -> Vec<Entry> {
    let mut by_version: BTreeMap<GroupVersion, Vec<Resource>> = BTreeMap::new();
    for descriptor in all.iter().filter_map(|known| known.published.as_ref()) {
        for (i, version) in descriptor.versions.iter().enumerate().filter(|(_, v)| v.served) {
            let gv = GroupVersion::new(descriptor.group.clone(), version.name.clone());
            by_version.entry(gv).or_default().push(Resource::of(descriptor, i));
        }
    }
    let entries = by_version.into_iter().map(|(gv, resources)| Entry {
        group: gv.group,
        version: DiscoveredVersion { name: gv.version, resources: resources.into(), ..DiscoveredVersion::default() },
        group_priority: GROUP_PRIORITY,
        version_priority: VERSION_PRIORITY,
    });
    entries.collect()
}
