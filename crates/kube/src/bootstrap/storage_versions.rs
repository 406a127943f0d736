//! StorageVersion objects: in which version each server writes each resource, and which versions it reads. Only with the
//! feature gates StorageVersionAPI and APIServerIdentity, and if internal.apiserver.k8s.io/v1alpha1 is served. Writes wait for
//! them (`storage_barrier`).

use super::{Bootstrap, KUBE_SYSTEM, StorageBarrier, find};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_schema::Descriptor;
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::ResourceRef;
use std::sync::Arc;
use std::time::Duration;

/// Against what others change.
const AGAIN: Duration = Duration::from_secs(10 * 60);
/// Writes are refused meanwhile.
const AGAIN_AFTER_FAILURE: Duration = Duration::from_secs(10);
const LEASE_POLL: Duration = Duration::from_millis(100);
const RETRIES: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);

fn storage_versions() -> GroupVersionResource {
    GroupVersionResource::new("internal.apiserver.k8s.io", "v1alpha1", "storageversions")
}

pub fn hook(config: &Arc<Bootstrap>, barrier: &Arc<StorageBarrier>) -> PostStartHook {
    let (config, barrier) = (config.clone(), barrier.clone());
    PostStartHook::new("built-in-resources-storage-version-updater", |context| async move {
        // Versions of a server without a lease are taken for those of one that is gone.
        wait_for_lease(&config).await;
        update(&config, &barrier).await;
        let again = if barrier.is_done() { AGAIN } else { AGAIN_AFTER_FAILURE };
        context.tasks.spawn_until_stopped("storage-versions", async move {
            let mut pause = again;
            loop {
                tokio::time::sleep(pause).await;
                update(&config, &barrier).await;
                pause = if barrier.is_done() { AGAIN } else { AGAIN_AFTER_FAILURE };
            }
        });
        Ok(())
    })
}

async fn wait_for_lease(config: &Bootstrap) {
    let leases = GroupVersionResource::new("coordination.k8s.io", "v1", "leases");
    let lease = ResourceRef::new(&leases).namespace(KUBE_SYSTEM).name(&config.identity.id);
    while !matches!(find(&config.client, &lease).await, Ok(Some(_))) {
        tokio::time::sleep(LEASE_POLL).await;
    }
}

async fn update(config: &Bootstrap, barrier: &StorageBarrier) {
    let mut stored: Vec<&Arc<Descriptor>> = config.resources.values().map(|resource| &resource.descriptor).collect();
    stored.sort_by(|a, b| (&a.group, &a.plural).cmp(&(&b.group, &b.plural)));
    for descriptor in stored {
        let resource = descriptor.group_resource();
        let mut tries = 0;
        while let Err(why) = update_one(config, descriptor).await {
            barrier.failed(&resource, &why);
            let meanwhile = why.is_already_exists() || why.is_conflict();
            tries += usize::from(!meanwhile);
            if tries == RETRIES {
                let (group, resource) = (&descriptor.group, &descriptor.plural);
                tracing::error!(err = %why, %group, %resource, "failed to update storage version");
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        if tries < RETRIES {
            barrier.told(&resource);
        }
    }
}

async fn update_one(config: &Bootstrap, descriptor: &Descriptor) -> Result<(), Status> {
    let group = if descriptor.group.is_empty() { "core" } else { descriptor.group.as_str() };
    let name = format!("{group}.{}", descriptor.plural);
    let (client, resource) = (&config.client, storage_versions());
    let collection = ResourceRef::new(&resource);
    let mut object = match find(client, &collection.clone().name(&name)).await? {
        Some(object) => object,
        None => {
            let mut object = Value::object();
            object.meta_mut().set_name(&name);
            object.set_at(&["spec"], Value::object());
            client.create(&collection, &object).await?
        }
    };
    set_version(&mut object, own_version(&config.identity.id, descriptor), &config.clock.now().rfc3339());
    client.update(&collection.clone().name(&name).subresource("status"), &object).await.map(drop)
}

fn own_version(server: &str, descriptor: &Descriptor) -> Value {
    let version_of = |version: &str| match descriptor.group.as_str() {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let served: Vec<Value> = descriptor.versions.iter().map(|v| version_of(&v.name).into()).collect();
    // Events are stored in another group, and definitions in a version that is not served: those are read, too.
    let encoding = Value::from(descriptor.storage.kind.api_version());
    let mut decodable = served.clone();
    if !decodable.contains(&encoding) {
        decodable.push(encoding.clone());
    }
    Value::from([
        ("apiServerID", server.into()),
        ("encodingVersion", encoding),
        ("decodableVersions", Value::Array(decodable)),
        ("servedVersions", Value::Array(served)),
    ])
}

/// Puts a server's version among those of all.
fn set_version(object: &mut Value, own: Value, now: &str) {
    let mut all = object.at(&["status", "storageVersions"]).and_then(Value::as_array).unwrap_or(&[]).to_vec();
    let server = own.str_at(&["apiServerID"]).to_owned();
    match all.iter_mut().find(|version| version.str_at(&["apiServerID"]) == server) {
        Some(version) => *version = own,
        None => all.push(own),
    }
    set_all(object, all, now);
}

/// Puts the versions of all servers there, and says whether all write the same one.
pub fn set_all(object: &mut Value, all: Vec<Value>, now: &str) {
    let before = object.str_at(&["status", "commonEncodingVersion"]).to_owned();
    let first = all.first().map(|version| version.str_at(&["encodingVersion"]).to_owned());
    let common = first.filter(|first| all.iter().all(|version| version.str_at(&["encodingVersion"]) == first));
    object.set_at(&["status", "storageVersions"], Value::Array(all));
    match &common {
        Some(version) => object.set_at(&["status", "commonEncodingVersion"], version.as_str().into()),
        None => drop(object.remove_at(&["status", "commonEncodingVersion"])),
    }
    let moved = common.as_ref().is_some_and(|version| !before.is_empty() && before != *version);
    set_condition(object, common.is_some(), moved, now);
}

fn set_condition(object: &mut Value, common: bool, moved: bool, now: &str) {
    const KIND: &str = "AllEncodingVersionsEqual";
    let (status, reason, message) = match common {
        true => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        false => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let generation = object.meta().generation();
    let mut conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[]).to_vec();
    let known = conditions.iter().position(|condition| condition.str_at(&["type"]) == KIND);
    let since = known.map(|i| &conditions[i]).filter(|old| !moved && old.str_at(&["status"]) == status);
    let since = since.map_or(now, |old| old.str_at(&["lastTransitionTime"])).to_owned();
    let mut condition = Value::from([("type", KIND), ("status", status), ("reason", reason), ("message", message)]);
    condition.set_at(&["lastTransitionTime"], since.into());
    condition.set_at(&["observedGeneration"], Value::Int(generation));
    match known {
        Some(i) => conditions[i] = condition,
        None => conditions.push(condition),
    }
    object.set_at(&["status", "conditions"], Value::Array(conditions));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(server: &str, encoding: &str) -> Value {
        Value::from([("apiServerID", server), ("encodingVersion", encoding)])
    }

    #[test]
    fn servers_agree_or_do_not() {
        let mut object = Value::object();
        let condition = |object: &Value| {
            let condition = &object.at(&["status", "conditions"]).unwrap().as_array().unwrap()[0];
            (condition.str_at(&["status"]).to_owned(), condition.str_at(&["lastTransitionTime"]).to_owned())
        };
        set_version(&mut object, version("a", "apps/v1"), "1");
        assert_eq!(object.str_at(&["status", "commonEncodingVersion"]), "apps/v1");
        assert_eq!(condition(&object), ("True".into(), "1".into()));
        set_version(&mut object, version("b", "apps/v2"), "2");
        assert_eq!(object.at(&["status", "commonEncodingVersion"]), None);
        assert_eq!(condition(&object), ("False".into(), "2".into()));
        set_version(&mut object, version("a", "apps/v2"), "3");
        set_version(&mut object, version("a", "apps/v2"), "4");
        assert_eq!(condition(&object), ("True".into(), "3".into()), "since it is so");
        assert_eq!(object.at(&["status", "storageVersions"]).unwrap().as_array().unwrap().len(), 2);
    }

    /// A StorageVersion is refused otherwise, and so are all writes of the resource.
    #[test]
    fn what_is_written_can_be_read() {
        let catalog = kubelith_catalog::builtin();
        for descriptor in &catalog.descriptors {
            let own = own_version("s", descriptor);
            let decodable = own.at(&["decodableVersions"]).and_then(Value::as_array).unwrap();
            assert!(decodable.contains(own.get("encodingVersion").unwrap()), "{own:?}");
        }
        let versions = |group: &str, plural: &str| {
            let own = own_version("s", catalog.descriptor(group, plural).unwrap());
            let list = |key: &str| Vec::from_iter(own.get(key).unwrap().as_array().unwrap().iter().cloned());
            (own.str_at(&["encodingVersion"]).to_owned(), list("decodableVersions"), list("servedVersions"))
        };
        let texts = |all: &[&str]| Vec::from_iter(all.iter().map(|text| Value::from(*text)));
        assert_eq!(versions("", "pods"), ("v1".into(), texts(&["v1"]), texts(&["v1"])));
        let events = texts(&["events.k8s.io/v1", "v1"]);
        assert_eq!(versions("events.k8s.io", "events"), ("v1".into(), events, texts(&["events.k8s.io/v1"])));
    }
}
