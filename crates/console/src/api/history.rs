//! `GET /kubelith/v1/history?group=&resource=&namespace=&name=`: the versions of an object that the watch cache still has, newest
//! first; without `name`, the objects of the resource that were deleted lately.

use super::{Outcome, Sources, json, may, parameter};
use kubelith_http::Request;
use kubelith_meta::{GroupResource, Status};
use kubelith_store::cache::{EventKind, Version};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

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
    /// Since the server learnt of it.
    age_seconds: u64,
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
    let caches = sources.caches();
    let found = caches.into_iter().find(|(of, _)| *of == resource);
    let unknown = || Status::not_found(&GroupResource::new("", "resources"), &resource.to_string());
    let (_, cache) = found.ok_or_else(unknown)?;
    if name.is_empty() {
        let gone = cache.deletions(MAX_DELETIONS).into_iter();
        let gone = gone.filter(|version| namespace.is_empty() || version.event.object.namespace() == namespace);
        return json(&History { items: gone.map(|version| item(&version)).collect() });
    }
    let key = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    let mut bytes = 0;
    let versions = cache.versions(&key, MAX_VERSIONS).into_iter().take_while(|version| {
        let first = bytes == 0;
        bytes += version.event.object.json().len().max(1);
        first || bytes <= MAX_BYTES
    });
    let items = versions.map(|version| {
        let text = String::from_utf8(version.event.object.json().to_vec()).unwrap_or_default();
        Item { object: RawValue::from_string(text).ok(), ..item(&version) }
    });
    json(&History { items: items.collect() })
}

fn item(version: &Version) -> Item {
    let event = &version.event;
    Item {
        r#type: match event.kind {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
        },
        revision: event.revision.to_string(),
        age_seconds: version.age.as_secs(),
        namespace: event.object.namespace().to_owned(),
        name: event.object.name().to_owned(),
        object: None,
    }
}
