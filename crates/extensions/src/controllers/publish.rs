//! Tells the world which custom resources there are: discovery and OpenAPI, group version by group version.

use super::index::{Index, Known, Touched};
use crate::metrics::ExtensionsMetrics;
use crate::openapi;
use kubelith_meta::GroupVersion;
use kubelith_openapi::discovery::{Discovery, Entry, GroupVersion as DiscoveredVersion, Resource, Source};
use kubelith_openapi::{OpenApi, Subject};
use std::sync::Arc;

/// Of groups of custom resources among all groups.
const GROUP_PRIORITY: i32 = 1000;
const VERSION_PRIORITY: i32 = 100;

pub struct Publisher {
    pub discovery: Arc<Discovery>,
    pub openapi: Arc<OpenApi>,
    pub metrics: Arc<ExtensionsMetrics>,
}

impl Publisher {
    /// Publishes what changed with a definition: the work is that of its group, however many others there are.
    pub fn publish(&self, index: &Index, definition: &str, touched: &Touched) {
        if touched.versions.is_empty() {
            return;
        }
        self.metrics.published(definition, touched.reason, &touched.versions);
        let (mut entries, mut subjects, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for gv in &touched.versions {
            let group = index.group(&gv.group);
            let published: Vec<_> = group.iter().filter_map(|known| openapi::published(known, gv)).collect();
            match published.is_empty() {
                true => gone.push(gv.clone()),
                false => {
                    entries.push(entry(&group, gv));
                    subjects.push(Subject::Version(gv.clone(), published));
                }
            }
        }
        self.discovery.update(Source::CustomResources, entries, &gone);
        // The documents of built-in group versions are not ours to replace or to take away.
        let is_built_in = |gv: &GroupVersion| self.discovery.has(Source::BuiltIn, gv);
        subjects.retain(|subject| !matches!(subject, Subject::Version(gv, _) if is_built_in(gv)));
        gone.retain(|gv| !is_built_in(gv));
        self.openapi.put(subjects);
        let paths: Vec<String> = gone.into_iter().map(|gv| Subject::Version(gv, Vec::new()).path()).collect();
        self.openapi.remove(paths.iter().map(String::as_str));
    }
}

fn entry(group: &[Known], gv: &GroupVersion) -> Entry {
    let resources = group.iter().filter_map(|known| {
        let descriptor = known.published.as_ref()?;
        let index = descriptor.versions.iter().position(|v| v.name == gv.version && v.served)?;
        let mut resource = Resource::of(descriptor, index);
        resource.subresources.sort_by_key(|s| s.name != "status");
        Some(resource)
    });
    Entry {
        group: gv.group.clone(),
        version: DiscoveredVersion {
            name: gv.version.clone(),
            resources: resources.collect(),
            ..DiscoveredVersion::default()
        },
        group_priority: GROUP_PRIORITY,
        version_priority: VERSION_PRIORITY,
    }
}
