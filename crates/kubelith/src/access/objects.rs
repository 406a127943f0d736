//! Looks up the objects that tokens are bound to, in the caches of the resources that this server serves.

use futures::FutureExt;
use kubelith_auth::objects::{Looked, ObjectGetter};
use kubelith_auth::service_account::LegacyTokenUse;
use kubelith_auth::service_account::legacy::LAST_USED_LABEL;
use kubelith_auth::{Answer, AuthError};
use kubelith_codec::json;
use kubelith_kube::Resources;
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_registry::Resource;
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef};
use std::sync::{Arc, OnceLock};

/// The caches exist only after the authenticators that ask them: they are put in here.
#[derive(Default)]
pub struct CachedObjects {
    resources: OnceLock<Kinds>,
}

struct Kinds {
    service_accounts: Arc<Resource>,
    secrets: Arc<Resource>,
    pods: Arc<Resource>,
    nodes: Arc<Resource>,
}

impl CachedObjects {
    /// From now on objects can be found.
    pub fn serve(&self, resources: &Resources) -> Result<(), String> {
        let find = |kind: Looked| {
            let key = (Str::default(), Str::from(kind.resource()));
            resources.get(&key).cloned().ok_or_else(|| format!("{} are not served", kind.resource()))
        };
        let kinds = Kinds {
            service_accounts: find(Looked::ServiceAccount)?,
            secrets: find(Looked::Secret)?,
            pods: find(Looked::Pod)?,
            nodes: find(Looked::Node)?,
        };
        self.resources.set(kinds).map_err(|_| "the caches are known already".to_owned())
    }
}

impl ObjectGetter for CachedObjects {
    fn get<'a>(
        &'a self,
        kind: Looked,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Result<Option<Arc<Value>>, AuthError>> {
        let Some(kinds) = self.resources.get() else {
            return Answer::Ready(Err(AuthError::new("the server has not started yet")));
        };
        let resource = match kind {
            Looked::ServiceAccount => &kinds.service_accounts,
            Looked::Secret => &kinds.secrets,
            Looked::Pod => &kinds.pods,
            Looked::Node => &kinds.nodes,
        };
        let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        // What this server has deleted opens nothing from the answer on: the cache must have seen it.
        if resource.hub.caught_up().now_or_never() == Some(true)
            && let Some(object) = find(resource, &key)
        {
            return Answer::Ready(object.map(Some));
        }
        Answer::pending(async move {
            if resource.hub.caught_up().await
                && let Some(object) = find(resource, &key)
            {
                return object.map(Some);
            }
            // Another server may have written it a moment ago: ask the store how far the cache should be.
            resource.hub.fresh().await.map_err(|e| AuthError::new(e.to_string()))?;
            find(resource, &key).transpose()
        })
    }
}

fn find(resource: &Resource, key: &str) -> Option<Result<Arc<Value>, AuthError>> {
    let cached = resource.cache.get(key)?;
    let object = json::parse_stored(&cached.json()).map(Arc::new);
    Some(object.map_err(|e| AuthError::new(format!("unable to read a stored object: {e}"))))
}

/// Notes in the Secret when a legacy token was last used.
#[derive(Default)]
pub struct LegacyUse {
    client: OnceLock<LoopbackClient>,
}

impl LegacyUse {
    pub fn serve(&self, client: LoopbackClient) {
        let _ = self.client.set(client);
    }
}

impl LegacyTokenUse for LegacyUse {
    fn used(&self, secret: &Value, date: &str) {
        let Some(client) = self.client.get().cloned() else { return };
        let namespace = Str::from(secret.str_at(&["metadata", "namespace"]));
        let name = Str::from(secret.str_at(&["metadata", "name"]));
        let mut patch = Value::object();
        patch.set_at(&["metadata", "labels", LAST_USED_LABEL], date.into());
        tokio::spawn(async move {
            let secrets = GroupVersionResource::new("", "v1", "secrets");
            let target = ResourceRef::new(&secrets).namespace(&namespace).name(&name);
            if let Err(status) = client.patch(&target, PatchType::Merge, &patch).await {
                tracing::error!(err = %status.message, "the last use of a legacy token was not noted");
            }
        });
    }
}
