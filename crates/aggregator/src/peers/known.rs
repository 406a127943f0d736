//! What is known of other servers, and what follows: who serves what this server does not.

use arc_swap::ArcSwap;
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_openapi::discovery::PeerGroups;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What was shared by all servers and is gone may still be in what others said: so long it is not believed.
const GRACE: Duration = Duration::from_secs(5 * 60);

/// One other server.
#[derive(Debug, Default, Clone)]
pub struct Peer {
    resources: HashSet<(GroupVersion, Str)>,
    /// As it describes them, without the core group.
    groups: Vec<Value>,
}

impl Peer {
    /// Takes in an APIGroupDiscoveryList.
    pub fn add(&mut self, document: &Value) -> Result<(), String> {
        if document.str_at(&["kind"]) != "APIGroupDiscoveryList" {
            return Err(format!(
                "error decoding discovery response: not a list of groups: {}",
                document.str_at(&["kind"])
            ));
        }
        for group in list(document, "items") {
            let name = group.str_at(&["metadata", "name"]);
            for version in list(group, "versions") {
                let gv = GroupVersion::new(name, version.str_at(&["version"]));
                let resources = list(version, "resources").iter().map(|r| Str::from(r.str_at(&["resource"])));
                self.resources.extend(resources.map(|resource| (gv.clone(), resource)));
            }
            let is_new = !self.groups.iter().any(|known| known.str_at(&["metadata", "name"]) == name);
            if !name.is_empty() && is_new {
                self.groups.push(group.clone());
            }
        }
        Ok(())
    }

    /// The groups without these versions.
    fn groups_without(&self, shared: &HashSet<GroupVersion>) -> Vec<Value> {
        let mut left = Vec::new();
        for group in &self.groups {
            let name = group.str_at(&["metadata", "name"]);
            let is_own = |v: &&Value| !shared.contains(&GroupVersion::new(name, v.str_at(&["version"])));
            let versions: Vec<Value> = list(group, "versions").iter().filter(is_own).cloned().collect();
            if !versions.is_empty() {
                let mut group = group.clone();
                group.set_at(&["versions"], Value::Array(versions));
                left.push(group);
            }
        }
        left
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

#[derive(Default)]
pub struct Known {
    state: Mutex<State>,
    /// `group/version/resource` that others serve and this server does not, with who does.
    elsewhere: ArcSwap<HashMap<String, Arc<[Str]>>>,
}

#[derive(Default)]
struct State {
    peers: BTreeMap<Str, Peer>,
    /// Group versions of custom resources and extension servers.
    shared: BTreeSet<GroupVersion>,
    /// Those that were, and when they went.
    gone: BTreeMap<GroupVersion, Instant>,
}

impl Known {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under this lock")
    }

    pub fn set_peers(&self, peers: BTreeMap<Str, Peer>) {
        self.state().peers = peers;
    }

    /// After how long it is to be called again, if something went.
    pub fn set_shared(&self, shared: BTreeSet<GroupVersion>) -> Option<Duration> {
        let (mut state, now) = (self.state(), Instant::now());
        let went: Vec<GroupVersion> = state.shared.difference(&shared).cloned().collect();
        state.gone.extend(went.into_iter().map(|gv| (gv, now)));
        state.gone.retain(|gv, since| now.duration_since(*since) < GRACE && !shared.contains(gv));
        state.shared = shared;
        state.gone.values().min().map(|since| GRACE.saturating_sub(now.duration_since(*since)))
    }

    /// Finds out anew who serves what, beside `own`. Answers what others serve.
    pub fn refresh(&self, own: &HashSet<(GroupVersion, Str)>) -> PeerGroups {
        let state = self.state();
        let shared: HashSet<GroupVersion> = state.shared.iter().chain(state.gone.keys()).cloned().collect();
        let mut elsewhere: HashMap<String, Vec<Str>> = HashMap::new();
        for (id, peer) in &state.peers {
            let resources = peer.resources.iter().filter(|one| !own.contains(one) && !shared.contains(&one.0));
            for (gv, resource) in resources {
                elsewhere.entry(key(&gv.group, &gv.version, resource)).or_default().push(id.clone());
            }
        }
        let elsewhere = elsewhere.into_iter().map(|(key, servers)| (key, servers.into()));
        self.elsewhere.store(Arc::new(elsewhere.collect()));
        state.peers.iter().map(|(id, peer)| (id.clone(), peer.groups_without(&shared))).collect()
    }

    /// Who serves what this server does not; nobody if it does, or if nobody does.
    pub fn only_at(&self, group: &str, version: &str, resource: &str) -> Option<Arc<[Str]>> {
        let elsewhere = self.elsewhere.load();
        if elsewhere.is_empty() {
            return None;
        }
        elsewhere.get(&key(group, version, resource)).cloned()
    }
}

fn key(group: &str, version: &str, resource: &str) -> String {
    format!("{group}/{version}/{resource}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    fn peer(text: &str) -> Peer {
        let items: Vec<String> = text
            .split_whitespace()
            .map(|item| {
                let parts: Vec<&str> = item.split('/').collect();
                format!(
                    r#"{{"metadata":{{"name":"{}"}},"versions":[{{"version":"{}","resources":[{{"resource":"{}"}}]}}]}}"#,
                    parts[0], parts[1], parts[2]
                )
            })
            .collect();
        let document = format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{}]}}"#, items.join(","));
        let mut peer = Peer::default();
        peer.add(&json::parse(document.as_bytes()).unwrap()).unwrap();
        peer
    }

    #[test]
    fn what_only_others_serve_is_found() {
        let known = Known::default();
        let own: HashSet<_> = [(GroupVersion::new("", "v1"), Str::from("pods"))].into();
        assert!(known.only_at("batch", "v1", "jobs").is_none());
        known.set_peers(BTreeMap::from([("a".into(), peer("/v1/pods batch/v1/jobs custom/v1/things"))]));
        assert_eq!(known.refresh(&own)["a"].len(), 2, "the core group has a place of its own");
        assert_eq!(*known.only_at("batch", "v1", "jobs").unwrap(), ["a"]);
        assert!(known.only_at("", "v1", "pods").is_none());
        assert!(known.only_at("custom", "v1", "things").is_some());

        let custom = GroupVersion::new("custom", "v1");
        assert_eq!(known.set_shared([custom.clone()].into()), None);
        assert_eq!(known.refresh(&own)["a"].len(), 1);
        assert!(known.only_at("custom", "v1", "things").is_none());
        assert!(known.set_shared(BTreeSet::new()).is_some(), "others may not have seen yet that it is gone");
        known.refresh(&own);
        assert!(known.only_at("custom", "v1", "things").is_none());
        known.set_peers(BTreeMap::new());
        assert!(known.refresh(&own).is_empty());
        assert!(known.only_at("batch", "v1", "jobs").is_none());
    }

    #[test]
    fn what_is_no_discovery_is_refused() {
        assert!(Peer::default().add(&Value::from([("kind", "APIGroupList")])).is_err());
    }
}
