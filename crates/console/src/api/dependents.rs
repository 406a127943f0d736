//! `GET /kubelith/v1/dependents?uid=`: the objects that name this one as their owner, and those that name them, as the garbage
//! collector would follow them. Only those that who asks may list are told.

use super::{Outcome, Sources, allowed, json, parameter, question};
use kubelith_http::Request;
use kubelith_meta::{GroupResource, Status};
use kubelith_store::cache::ResourceCache;
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

const MAX_FOUND: usize = 500;

#[derive(Serialize)]
struct Dependents {
    items: Vec<Dependent>,
    /// There are more.
    more: bool,
    /// Some are not told, since who asks may not list them.
    hidden: usize,
}

#[derive(Serialize, Clone)]
#[serde(rename_all = "camelCase")]
struct Dependent {
    group: String,
    resource: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    /// The uid of the owner by which it was found.
    owner: String,
    controller: bool,
    block_owner_deletion: bool,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    kind: String,
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    uid: String,
    #[serde(default)]
    controller: bool,
    #[serde(default)]
    block_owner_deletion: bool,
}

pub async fn serve(sources: &Arc<Sources>, request: &Request) -> Outcome {
    let uid = parameter(request, "uid");
    if uid.is_empty() {
        return Err(Status::bad_request("the uid of an owner is needed"));
    }
    let caches = sources.caches();
    let found = tokio::task::spawn_blocking(move || find(&caches, uid)).await;
    let (found, more) = found.map_err(|why| Status::internal_error(why.to_string()))?;
    let authorizer = request.context().authorizer.clone();
    let mut known = HashMap::new();
    let mut items = Vec::new();
    let mut hidden = 0;
    for dependent in found {
        let resource = GroupResource::new(dependent.group.as_str(), dependent.resource.as_str());
        let key = (resource.clone(), dependent.namespace.clone());
        let may = match (known.get(&key), &authorizer) {
            (Some(may), _) => *may,
            (None, Some(authorizer)) => {
                let may = allowed(authorizer, &question(request, "list", &resource, &dependent.namespace, "")).await;
                known.insert(key, may);
                may
            }
            (None, None) => false,
        };
        match may {
            true => items.push(dependent),
            false => hidden += 1,
        }
    }
    json(&Dependents { items, more, hidden })
}

/// All below `root`, level by level.
fn find(caches: &[(GroupResource, Arc<ResourceCache>)], root: String) -> (Vec<Dependent>, bool) {
    let mut by_owner = by_owner(caches);
    let (mut found, mut seen) = (Vec::new(), HashSet::from([root.clone()]));
    let mut next = VecDeque::from([root]);
    while let Some(owner) = next.pop_front() {
        for dependent in by_owner.remove(&owner).unwrap_or_default() {
            if !seen.insert(dependent.uid.clone()) {
                continue;
            }
            if found.len() >= MAX_FOUND {
                return (found, true);
            }
            next.push_back(dependent.uid.clone());
            found.push(dependent);
        }
    }
    (found, false)
}

fn by_owner(caches: &[(GroupResource, Arc<ResourceCache>)]) -> HashMap<String, Vec<Dependent>> {
    let owned = Finder::new(b"\"ownerReferences\":[");
    let mut found = HashMap::<String, Vec<Dependent>>::new();
    for (resource, cache) in caches {
        for object in cache.snapshot().objects.values() {
            let json = object.json();
            if owned.find(&json).is_none() {
                continue;
            }
            let Ok(Object { kind, metadata }) = serde_json::from_slice::<Object>(&json) else { continue };
            for owner in metadata.owner_references {
                found.entry(owner.uid.clone()).or_default().push(Dependent {
                    group: resource.group.to_string(),
                    resource: resource.resource.to_string(),
                    kind: kind.clone(),
                    namespace: object.namespace().to_owned(),
                    name: object.name().to_owned(),
                    uid: metadata.uid.clone(),
                    owner: owner.uid,
                    controller: owner.controller,
                    block_owner_deletion: owner.block_owner_deletion,
                });
            }
        }
    }
    found
}
