//! The roles and bindings of RBAC, reconciled at each start: what is missing is added, what people changed stays.

use super::{Bootstrap, Own, ensure, find};
use futures::StreamExt;
use kubelith_auth::authz::rbac::reconcile::{Reconciliation, reconcile_binding, reconcile_role};
use kubelith_auth::authz::rbac::{RBAC_GROUP, RbacKind};
use kubelith_auth::bootstrap::{AGGREGATED_FROM, BootstrapObject, SPLIT_FROM, aggregated_copy, policy, split_copy};
use kubelith_features::FeatureGates;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Objects reconciled at a time: enough to share the store's commits.
const AT_ONCE: usize = 64;
/// A racing server may change an object between our read and our write.
const ATTEMPTS: usize = 5;
const RETRY: Duration = Duration::from_secs(1);
/// The server gives up when they could not be made for this long: without roles nothing works.
const START_LIMIT: Duration = Duration::from_secs(30);

pub fn first_objects(gates: &FeatureGates) -> impl Iterator<Item = Own> {
    policy(gates).into_iter().map(|wanted| Own::new(resource(wanted.kind), wanted.object))
}

pub fn hook(config: &Arc<Bootstrap>, gates: Arc<FeatureGates>) -> PostStartHook {
    let config = config.clone();
    PostStartHook::new("rbac/bootstrap-roles", move |context| async move {
        if !config.beginning.is_left_to(context.begun) {
            return Ok(());
        }
        let end = Instant::now() + START_LIMIT;
        while let Err(why) = ensure_all(&config, &gates).await {
            if Instant::now() >= end {
                return Err(format!("unable to initialize roles: {why}"));
            }
            tracing::error!(err = %why, "unable to initialize roles, will be tried again");
            tokio::time::sleep(RETRY).await;
        }
        Ok(())
    })
}

async fn ensure_all(config: &Bootstrap, gates: &FeatureGates) -> Result<(), Status> {
    let client = &config.client;
    let policy = policy(gates);
    for (old, new) in AGGREGATED_FROM {
        copy_role(client, old, new).await?;
    }
    for (old, new) in SPLIT_FROM {
        let template = policy.iter().find(|o| o.kind == RbacKind::ClusterRoleBinding && o.object.meta().name() == new);
        if let Some(template) = template {
            split_binding(client, old, &template.object).await?;
        }
    }
    let all = futures::stream::iter(policy).map(|wanted| async move { reconcile(config, &wanted).await });
    let mut all = all.buffer_unordered(AT_ONCE);
    while let Some(done) = all.next().await {
        done?;
    }
    Ok(())
}

/// Rules that somebody gave a role before it collected those of others live on in a role of their own.
async fn copy_role(client: &LoopbackClient, old: &str, new: &str) -> Result<(), Status> {
    let resource = resource(RbacKind::ClusterRole);
    let of = |name| ResourceRef::new(&resource).name(name);
    let (old, existing) = (find(client, &of(old)).await?, find(client, &of(new)).await?);
    match aggregated_copy(old.as_ref(), existing.as_ref(), new) {
        Some(copy) => ensure(client, &resource, &copy).await,
        None => Ok(()),
    }
}

/// A binding that was once part of another is for the same subjects: whom an operator locked out of one must not come in
/// by the other.
async fn split_binding(client: &LoopbackClient, old: &str, template: &Value) -> Result<(), Status> {
    let resource = resource(RbacKind::ClusterRoleBinding);
    let of = |name| ResourceRef::new(&resource).name(name);
    let (old, existing) = (find(client, &of(old)).await?, find(client, &of(template.meta().name())).await?);
    match split_copy(old.as_ref(), existing.as_ref(), template) {
        Some(copy) => ensure(client, &resource, &copy).await,
        None => Ok(()),
    }
}

fn resource(kind: RbacKind) -> GroupVersionResource {
    GroupVersionResource::new(RBAC_GROUP, "v1", kind.resource())
}

async fn reconcile(config: &Bootstrap, wanted: &BootstrapObject) -> Result<(), Status> {
    let meta = wanted.object.meta();
    let key = match meta.namespace() {
        "" => meta.name().to_owned(),
        namespace => format!("{namespace}/{}", meta.name()),
    };
    let resource = resource(wanted.kind);
    let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
    // In a new store there is nothing to look at. Whoever made it meanwhile is met by the create, and looked at then.
    let mut is_known = config.has(RBAC_GROUP, wanted.kind.resource(), &key);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let existing = if is_known { find(&config.client, &target).await? } else { None };
        is_known = true;
        match reconcile_once(&config.client, wanted, existing.as_ref()).await {
            Err(status) if (status.is_conflict() || status.is_already_exists()) && attempt < ATTEMPTS => continue,
            // A role in a namespace that is not there (yet) is left for the next start, as in the reference.
            Err(status) if status.is_not_found() => return Ok(()),
            done => return done,
        }
    }
}

async fn reconcile_once(
    client: &LoopbackClient,
    wanted: &BootstrapObject,
    existing: Option<&Value>,
) -> Result<(), Status> {
    let resource = resource(wanted.kind);
    let meta = wanted.object.meta();
    let collection = ResourceRef::new(&resource).namespace(meta.namespace());
    let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
    let step = match wanted.kind {
        RbacKind::Role | RbacKind::ClusterRole => reconcile_role(existing, &wanted.object),
        RbacKind::RoleBinding | RbacKind::ClusterRoleBinding => reconcile_binding(existing, &wanted.object),
    };
    match step {
        Reconciliation::UpToDate | Reconciliation::Protected => Ok(()),
        Reconciliation::Create(object) => client.create_unseen(&collection, &object).await,
        Reconciliation::Update(object) => client.update(&target, &object).await.map(drop),
        Reconciliation::Recreate(object) => {
            client.delete(&target, None).await?;
            client.create_unseen(&collection, &object).await
        }
    }
}
