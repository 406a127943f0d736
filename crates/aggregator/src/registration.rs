//! Routes appear and vanish with APIServices, and so do groups in the discovery documents.

use crate::api_service::{ApiServices, group_version_of};
use crate::routes::{Backend, Routes, Transports};
use arc_swap::ArcSwapOption;
use kubelith_meta::gvk::compare_versions;
use kubelith_meta::{GroupVersion, Str};
use kubelith_openapi::discovery;
use kubelith_server::controller::Next;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The group that keeps all others: no APIService says so, and it comes first.
pub const OWN_GROUP: &str = "apiregistration.k8s.io";

pub struct Registration {
    api_services: ApiServices,
    routes: Arc<Routes>,
    transports: Arc<Transports>,
    known: Mutex<BTreeMap<Str, Place>>,
    /// Made of `known` when somebody asks.
    groups: ArcSwapOption<Vec<discovery::Group>>,
}

/// Where a group version stands among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    gv: GroupVersion,
    group_priority: i32,
    version_priority: i32,
}

impl Registration {
    pub fn new(api_services: ApiServices, routes: Arc<Routes>, transports: Arc<Transports>) -> Arc<Registration> {
        let (known, groups) = Default::default();
        Arc::new(Registration { api_services, routes, transports, known, groups })
    }

    pub async fn reconcile(self: Arc<Self>, name: Str) -> Result<Next, String> {
        self.apply(&name);
        Ok(Next::Done)
    }

    fn apply(&self, name: &Str) {
        let api_service = self.api_services.get(name);
        match api_service.as_ref().and_then(|a| Some((a, a.service.as_ref()?))) {
            None => self.routes.remove(&group_version_of(name)),
            Some((a, service)) => self.routes.put(Arc::new(Backend {
                name: a.name.clone(),
                gv: a.gv.clone(),
                service: service.clone(),
                available: a.is_available(),
                transport: self.transports.get(a, service),
            })),
        }
        let place = api_service.map(|a| Place {
            gv: a.gv.clone(),
            group_priority: a.group_priority,
            version_priority: a.version_priority,
        });
        let mut known = self.known.lock().expect("no panic under this lock");
        let changed = match place {
            Some(place) if known.get(name) == Some(&place) => false,
            Some(place) => {
                known.insert(name.clone(), place);
                true
            }
            None => known.remove(name).is_some(),
        };
        if changed {
            self.groups.store(None);
        }
    }

    /// All backends again, with our certificate as it is now.
    pub fn refresh(&self) {
        for backend in self.routes.all() {
            self.apply(&backend.name);
        }
    }

    /// The groups that there are APIServices for, as `/apis` lists them.
    pub fn groups(&self) -> Arc<Vec<discovery::Group>> {
        if let Some(groups) = self.groups.load_full() {
            return groups;
        }
        // Kept under the lock, so that no change is overwritten by an older state.
        let known = self.known.lock().expect("no panic under this lock");
        let groups = Arc::new(sorted(known.values()));
        self.groups.store(Some(groups.clone()));
        groups
    }
}

/// Groups by their highest priority, then by name; versions by priority, then as Kubernetes sorts them.
fn sorted<'a>(places: impl Iterator<Item = &'a Place>) -> Vec<discovery::Group> {
    let mut by_group: BTreeMap<&Str, Vec<&Place>> = BTreeMap::new();
    for place in places.filter(|p| !p.gv.group.is_empty() && p.gv.group != OWN_GROUP) {
        by_group.entry(&place.gv.group).or_default().push(place);
    }
    let mut groups: Vec<(i32, discovery::Group)> = by_group
        .into_iter()
        .map(|(name, mut places)| {
            places.sort_by(|a, b| {
                let by_priority = b.version_priority.cmp(&a.version_priority);
                by_priority.then_with(|| compare_versions(&b.gv.version, &a.gv.version))
            });
            let priority = places.iter().map(|p| p.group_priority).max().unwrap_or(0);
            let version = |p: &&Place| version(&p.gv.version);
            (priority, discovery::Group { name: name.clone(), versions: places.iter().map(version).collect() })
        })
        .collect();
    groups.sort_by_key(|(priority, _)| Reverse(*priority));
    let own = discovery::Group { name: OWN_GROUP.into(), versions: vec![version("v1")] };
    std::iter::once(own).chain(groups.into_iter().map(|(_, group)| group)).collect()
}

fn version(name: &str) -> discovery::GroupVersion {
    discovery::GroupVersion { name: name.into(), ..discovery::GroupVersion::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_stand_by_priority() {
        let place = |group: &str, version: &str, group_priority, version_priority| Place {
            gv: GroupVersion::new(group, version),
            group_priority,
            version_priority,
        };
        let places = [
            place("", "v1", 18000, 1),
            place("z.io", "v1beta1", 100, 100),
            place("z.io", "v1", 2000, 100),
            place("z.io", "v2alpha1", 100, 200),
            place("b.io", "v1", 1000, 1),
            place("a.io", "v1", 1000, 1),
        ];
        let shown: Vec<String> = sorted(places.iter())
            .iter()
            .map(|g| {
                format!("{}: {}", g.name, g.versions.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(shown, ["apiregistration.k8s.io: v1", "z.io: v2alpha1 v1 v1beta1", "a.io: v1", "b.io: v1"]);
    }
}
