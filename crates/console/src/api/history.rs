//! `GET /kubelith/v1/history?group=&resource=&namespace=&name=`: the versions of an object that the store or the watch cache still has,
//! newest first; without `name`, the objects of the resource that were deleted lately.

use super::{Found, Outcome, Sources, json, may, parameter};
use kubelith_http::Request;
use kubelith_meta::{GroupResource, Status};
use kubelith_store::cache::{CachedObject, EventKind, Version};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Versions of one object.
const MAX_VERSIONS: usize = 50;
const MAX_DELETIONS: usize = 500;
/// Of all versions together; at least one is told.
const MAX_BYTES: usize = 8 << 20;

#[derive(Serialize)]
struct History {
    items: Vec<Item>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    r#type: &'static str,
    revision: String,
    /// Since the server learnt of it; absent where only the store knows of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Box<RawValue>>,
}

pub async fn serve(sources: &Arc<Sources>, request: &Request) -> Outcome {
    let resource = GroupResource::new(parameter(request, "group"), parameter(request, "resource"));
    let (namespace, name) = (parameter(request, "namespace"), parameter(request, "name"));
    let verb = if name.is_empty() { "list" } else { "get" };
    if !may(request, verb, &resource, &namespace, &name).await {
        let user = request.user().map_or("", |user| user.name.as_str());
        let why = format!("User {user:?} cannot {verb} resource {:?}, so its past is not shown", resource.to_string());
        return Err(Status::forbidden(&resource, &name, why));
    }
    let found = sources.cache_of(&resource);
    let unknown = || Status::not_found(&GroupResource::new("", "resources"), &resource.to_string());
    let found = found.ok_or_else(unknown)?;
    if name.is_empty() {
        let gone =
            deletions(&found).await.into_iter().filter(|item| namespace.is_empty() || item.namespace == namespace);
        return json(&History { items: gone.collect() });
    }
    let key = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    let mut bytes = 0;
    let items = versions(&found, &key).await.into_iter().take_while(|item| {
        let first = bytes == 0;
        bytes += item.object.as_ref().map_or(0, |object| object.get().len()).max(1);
        first || bytes <= MAX_BYTES
    });
    json(&History { items: items.collect() })
}

/// States of an object that the store or the cache still has. The cache knows when it learnt of a change, and may have kept what the
/// store has compacted since; the store knows what was before this process began.
async fn versions(found: &Found, key: &str) -> Vec<Item> {
    let mut items = BTreeMap::new();
    match found.hub.past_of(&found.prefix, key, MAX_VERSIONS).await {
        Ok(past) => {
            items.extend(past.iter().map(|v| (v.object.revision, item(v.kind, &v.object, None).with(&v.object))))
        }
        Err(why) => tracing::warn!("the store does not tell the past of {key}: {why}"),
    }
    for Version { event, age } in found.cache.versions(key, MAX_VERSIONS) {
        items.insert(event.revision, item(event.kind, &event.object, Some(age)).with(&event.object));
    }
    items.into_values().rev().take(MAX_VERSIONS).collect()
}

/// Objects that are gone, as the cache and the store know of them.
async fn deletions(found: &Found) -> Vec<Item> {
    let mut items = BTreeMap::new();
    match found.hub.past_deletions(&found.prefix, MAX_DELETIONS).await {
        Ok(past) => items.extend(past.iter().map(|v| (v.object.revision, item(v.kind, &v.object, None)))),
        Err(why) => tracing::warn!("the store does not tell what was deleted: {why}"),
    }
    for Version { event, age } in found.cache.deletions(MAX_DELETIONS) {
        items.insert(event.revision, item(event.kind, &event.object, Some(age)));
    }
    items.into_values().rev().take(MAX_DELETIONS).collect()
}

impl Item {
    fn with(self, object: &CachedObject) -> Item {
        let text = String::from_utf8(object.json().to_vec()).unwrap_or_default();
        Item { object: RawValue::from_string(text).ok(), ..self }
    }
}

fn item(kind: EventKind, object: &CachedObject, age: Option<Duration>) -> Item {
    Item {
        r#type: match kind {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
        },
        revision: object.revision.to_string(),
        age_seconds: age.map(|age| age.as_secs()),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        object: None,
    }
}
