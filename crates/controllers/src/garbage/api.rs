//! Reading and changing single objects.

use super::graph::{Identity, Owner, Seen};
use crate::world::{Discovered, Known, World};
use arc_swap::ArcSwap;
use kubelith_codec::json::{self, Select};
use kubelith_meta::{GroupResource, Status, Str, Value};
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef};
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

/// Attempts to change an object that others change, too.
const ATTEMPTS: usize = 5;

/// What of an object matters here.
const METADATA: Select = Select::Members(&[(
    "metadata",
    Select::Members(&[
        ("name", Select::All),
        ("namespace", Select::All),
        ("uid", Select::All),
        ("resourceVersion", Select::All),
        ("deletionTimestamp", Select::All),
        ("finalizers", Select::All),
        ("ownerReferences", Select::All),
    ]),
)]);

pub struct Api {
    client: LoopbackClient,
    world: Arc<dyn World>,
    discovered: ArcSwap<Discovered>,
    /// The caches of those resources that have one here.
    caches: RwLock<HashMap<GroupResource, Arc<ResourceCache>>>,
}

/// Why a kind cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreachable {
    /// Nobody serves it, at the moment.
    Unknown(String),
    /// An object without a namespace refers to one with: never right.
    NoNamespace,
}

/// Where an object is.
pub struct Place {
    pub known: Known,
    pub namespace: Str,
    pub name: Str,
}

impl Place {
    fn target(&self) -> ResourceRef<'_> {
        ResourceRef::new(&self.known.resource).namespace(&self.namespace).name(&self.name)
    }

    fn key(&self) -> String {
        match self.known.namespaced {
            true => format!("{}/{}", self.namespace, self.name),
            false => self.name.to_string(),
        }
    }
}

impl Api {
    pub fn new(client: LoopbackClient, world: Arc<dyn World>) -> Api {
        Api { client, world, discovered: ArcSwap::default(), caches: RwLock::default() }
    }

    pub fn client(&self) -> &LoopbackClient {
        &self.client
    }

    /// Looks anew which resources there are.
    pub fn discover(&self) -> Arc<Discovered> {
        let discovered = Arc::new(self.world.discover());
        self.discovered.store(discovered.clone());
        discovered
    }

    pub fn set_cache(&self, resource: GroupResource, cache: Option<Arc<ResourceCache>>) {
        let mut caches = self.caches.write().expect("no panic under this lock");
        match cache {
            Some(cache) => drop(caches.insert(resource, cache)),
            None => drop(caches.remove(&resource)),
        }
    }

    fn cache(&self, resource: &GroupResource) -> Option<Arc<ResourceCache>> {
        self.caches.read().expect("no panic under this lock").get(resource).cloned()
    }

    pub fn place(&self, identity: &Identity) -> Result<Place, Unreachable> {
        let (api_version, kind) = (&identity.api_version, &identity.kind);
        let discovered = self.discovered.load();
        let known = discovered
            .of_kind(api_version, kind)
            .cloned()
            .ok_or_else(|| Unreachable::Unknown(format!("unable to get REST mapping for {api_version}/{kind}.")))?;
        let namespace = match (known.namespaced, identity.namespace.is_empty()) {
            (true, true) => return Err(Unreachable::NoNamespace),
            (true, false) => identity.namespace.clone(),
            (false, _) => Str::default(),
        };
        Ok(Place { known, namespace, name: identity.name.clone() })
    }

    /// The object as the watch cache has it, which is as new as whatever made us look. That there is none is asked of
    /// the server: it can be right only then.
    pub async fn latest(&self, place: &Place) -> Result<Option<Seen>, Status> {
        let (api_version, kind) = (place.known.api_version(), &place.known.kind);
        if let Some(cache) = self.cache(&place.known.resource.group_resource())
            && let Some(object) = cache.get(&place.key())
            && let Some(seen) = seen(&api_version, kind, &object)
        {
            return Ok(Some(seen));
        }
        self.live(place).await
    }

    pub async fn live(&self, place: &Place) -> Result<Option<Seen>, Status> {
        match self.client.get_metadata(&place.target()).await {
            Ok(object) => Ok(Some(Seen::of(&place.known.api_version(), &place.known.kind, &object))),
            Err(status) if status.is_not_found() => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// The object of this uid in any namespace. Only a cache can tell.
    pub fn elsewhere(&self, place: &Place, uid: &str) -> Option<Seen> {
        if !place.known.namespaced {
            return None;
        }
        let cache = self.cache(&place.known.resource.group_resource())?;
        let suffix = format!("/{}", place.name);
        let snapshot = cache.snapshot();
        let named = snapshot.objects.iter().filter(|(key, _)| key.ends_with(&suffix));
        let (api_version, kind) = (place.known.api_version(), &place.known.kind);
        named.filter_map(|(_, o)| seen(&api_version, kind, o)).find(|seen| seen.identity.uid == uid)
    }

    /// Deletes the object if it is as it was seen; what does not concern its owners may have changed.
    pub async fn delete(&self, place: &Place, seen: &Seen, policy: &str) -> Result<(), Status> {
        let uid = &seen.identity.uid;
        let options = |version: Option<&Str>| {
            let mut preconditions = Value::from([("uid", uid.clone())]);
            if let Some(version) = version {
                preconditions.set_at(&["resourceVersion"], version.clone().into());
            }
            Value::from([
                ("kind", Value::from("DeleteOptions")),
                ("apiVersion", "v1".into()),
                ("preconditions", preconditions),
                ("propagationPolicy", policy.into()),
            ])
        };
        let target = place.target();
        match self.client.delete_unseen(&target, &options(Some(&seen.resource_version))).await {
            Err(status) if status.is_conflict() => {
                let Some(live) = self.live(place).await? else { return Err(not_found(place)) };
                let unrelated = live.identity.uid == *uid
                    && live.resource_version != seen.resource_version
                    && live.owners == seen.owners;
                if !unrelated {
                    return Err(status);
                }
                self.client.delete_unseen(&target, &options(None)).await
            }
            outcome => outcome,
        }
    }

    /// Takes references to these owners away.
    pub async fn remove_owners(&self, place: &Place, uid: &str, owners: &[Str]) -> Result<(), Status> {
        let gone = |owner: &Str| Value::from([("$patch", Value::from("delete")), ("uid", owner.clone().into())]);
        let references: Vec<Value> = owners.iter().map(gone).collect();
        let keep = |reference: &Value| !owners.iter().any(|o| *o == reference.str_at(&["uid"]));
        self.change_references(place, uid, references, |references| references.retain(keep)).await
    }

    /// References to owners that block those block them no more.
    pub async fn unblock(&self, place: &Place, uid: &str, owners: &[Owner]) -> Result<(), Status> {
        let blocking = owners.iter().filter(|o| o.blocks);
        let references: Vec<Value> = blocking
            .map(|o| Value::from([("uid", Value::from(o.uid.clone())), ("blockOwnerDeletion", false.into())]))
            .collect();
        let lift = |references: &mut Vec<Value>| {
            for reference in references.iter_mut().filter(|r| r.get("blockOwnerDeletion").is_some()) {
                reference.set_at(&["blockOwnerDeletion"], false.into());
            }
        };
        self.change_references(place, uid, references, lift).await
    }

    /// By a strategic merge patch, or by the whole list where a kind knows no such patches.
    async fn change_references(
        &self,
        place: &Place,
        uid: &str,
        strategic: Vec<Value>,
        change: impl Fn(&mut Vec<Value>),
    ) -> Result<(), Status> {
        let metadata = Value::from([("ownerReferences", Value::from(strategic)), ("uid", uid.into())]);
        let patch = Value::from([("metadata", metadata)]);
        match self.client.patch_large(&place.target(), PatchType::Strategic, &patch).await {
            Err(status) if status.is_unsupported_media_type() => {}
            outcome => return outcome.map(drop),
        }
        for _ in 0..ATTEMPTS {
            let object = self.client.get_metadata(&place.target()).await?;
            if object.meta().uid() != uid {
                return Err(not_found(place));
            }
            let mut references =
                object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default().to_vec();
            change(&mut references);
            let version = object.meta().resource_version();
            let metadata =
                Value::from([("resourceVersion", Value::from(version)), ("ownerReferences", references.into())]);
            let patch = Value::from([("metadata", metadata)]);
            match self.client.patch_large(&place.target(), PatchType::Merge, &patch).await {
                Err(status) if status.is_conflict() => continue,
                outcome => return outcome.map(drop),
            }
        }
        Err(Status::unknown(format!("updateMaxRetries({ATTEMPTS}) has reached")))
    }

    pub async fn remove_finalizer(&self, place: &Place, identity: &Identity, finalizer: &str) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            let live = self.live(place).await.map_err(|why| {
                let why = why.message;
                format!(
                    "cannot finalize owner {identity}, because cannot get it: {why}. The garbage collector will retry later"
                )
            })?;
            let Some(live) = live.filter(|l| l.identity.uid == identity.uid) else { return Ok(()) };
            if !live.has_finalizer(finalizer) {
                return Ok(());
            }
            let left: Vec<Value> =
                live.finalizers.iter().filter(|f| *f != finalizer).map(|f| Value::from(f.clone())).collect();
            let metadata = Value::from([
                ("resourceVersion", Value::from(live.resource_version.clone())),
                ("finalizers", left.into()),
            ]);
            match self
                .client
                .patch_large(&place.target(), PatchType::Merge, &Value::from([("metadata", metadata)]))
                .await
            {
                Err(status) if status.is_conflict() => continue,
                Err(status) if status.is_not_found() => return Ok(()),
                outcome => return outcome.map(drop).map_err(|status| status.message),
            }
        }
        Err(format!(
            "updateMaxRetries({ATTEMPTS}) has reached. The garbage collector will retry later for owner {identity}"
        ))
    }
}

fn not_found(place: &Place) -> Status {
    Status::not_found(&place.known.resource.group_resource(), &place.name)
}

/// What a cached object says of itself; `None` if it cannot be read.
pub fn seen(api_version: &Str, kind: &Str, object: &CachedObject) -> Option<Seen> {
    if object.broken.is_some() {
        return None;
    }
    let value = json::parse_selected(&object.json(), &METADATA).ok()?;
    Some(Seen::of(api_version, kind, &value))
}
