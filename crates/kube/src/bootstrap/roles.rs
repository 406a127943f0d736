//! The roles and bindings of RBAC, reconciled at each start: what is missing is added, what people changed stays.

use futures::StreamExt;
use kubelith_auth::authz::rbac::reconcile::{Reconciliation, reconcile_binding, reconcile_role};
use kubelith_auth::authz::rbac::{RBAC_GROUP, RbacKind};
use kubelith_auth::bootstrap::{BootstrapObject, policy};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};

/// Objects reconciled at a time: enough to share the store's commits.
const AT_ONCE: usize = 64;
/// A racing server may change an object between our read and our write.
const ATTEMPTS: usize = 5;

pub fn hook() -> PostStartHook {
    PostStartHook::new("rbac/bootstrap-roles", |context| async move {
        let client = &context.client;
        let all = futures::stream::iter(policy()).map(|wanted| async move { reconcile(client, &wanted).await });
        let mut all = all.buffer_unordered(AT_ONCE);
        while let Some(done) = all.next().await {
            done.map_err(|e| e.to_string())?;
        }
        Ok(())
    })
}

async fn reconcile(client: &LoopbackClient, wanted: &BootstrapObject) -> Result<(), Status> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match reconcile_once(client, wanted).await {
            Err(status) if (status.is_conflict() || status.is_already_exists()) && attempt < ATTEMPTS => continue,
            // A role in a namespace that is not there (yet) is left for the next start, as in the reference.
            Err(status) if status.is_not_found() => return Ok(()),
            done => return done,
        }
    }
}

async fn reconcile_once(client: &LoopbackClient, wanted: &BootstrapObject) -> Result<(), Status> {
    let resource = GroupVersionResource::new(RBAC_GROUP, "v1", wanted.kind.resource());
    let meta = wanted.object.meta();
    let collection = ResourceRef::new(&resource).namespace(meta.namespace());
    let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
    let existing: Option<Value> = match client.get(&target).await {
        Ok(found) => Some(found),
        Err(status) if status.is_not_found() => None,
        Err(status) => return Err(status),
    };
    let step = match wanted.kind {
        RbacKind::Role | RbacKind::ClusterRole => reconcile_role(existing.as_ref(), &wanted.object),
        RbacKind::RoleBinding | RbacKind::ClusterRoleBinding => reconcile_binding(existing.as_ref(), &wanted.object),
    };
    match step {
        Reconciliation::UpToDate | Reconciliation::Protected => Ok(()),
        Reconciliation::Create(object) => client.create(&collection, &object).await.map(drop),
        Reconciliation::Update(object) => client.update(&target, &object).await.map(drop),
        Reconciliation::Recreate(object) => {
            client.delete(&target, None).await?;
            client.create(&collection, &object).await.map(drop)
        }
    }
}
