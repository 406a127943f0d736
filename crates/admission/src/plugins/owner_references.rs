//! OwnerReferencesPermissionEnforcement: who makes an object go with its owner could delete it anyway, and who keeps an
//! owner from being deleted may touch its finalizers.

use super::list;
use crate::loopback::Loopback;
use crate::plugin::{Plugin, Verdict};
use kubelith_auth::{Attributes, Authorizer};
use kubelith_meta::text::Quoted;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::admission::{Operation, Request};
use std::sync::Arc;

pub struct OwnerReferencesPermissionEnforcement {
    pub authorizer: Arc<dyn Authorizer>,
    pub server: Arc<dyn Loopback>,
}

/// Why the user may not, as the reference prints it.
async fn denied(authorizer: &dyn Authorizer, attributes: &Attributes) -> Option<String> {
    let decision = authorizer.authorize(attributes).await;
    if decision.allowed() {
        return None;
    }
    let error = decision.error.as_ref().map_or("<nil>".to_owned(), ToString::to_string);
    Some(format!("{}, {error}", decision.reason))
}

impl OwnerReferencesPermissionEnforcement {
    async fn check(&self, request: Request<'_>, object: &Value) -> Result<(), Status> {
        let call = request.call;
        if request.operation != Operation::Create {
            let attributes = Attributes {
                user: call.user.clone(),
                verb: "delete".into(),
                namespace: call.namespace.clone(),
                group: call.resource.group.clone(),
                version: call.version.clone(),
                resource: call.resource.resource.clone(),
                subresource: call.subresource.clone(),
                name: call.name.clone(),
                resource_request: true,
                ..Attributes::default()
            };
            if let Some(why) = denied(&*self.authorizer, &attributes).await {
                let why = format!("cannot set an ownerRef on a resource you can't delete: {why}");
                return Err(request.forbidden(object, why));
            }
        }
        let blocking = newly_blocking(object, request.old);
        if blocking.is_empty() || denied(&*self.authorizer, &finalizers(request, "*", "*", "*", "*")).await.is_none() {
            return Ok(());
        }
        for owner in blocking {
            self.check_owner(request, object, owner).await?;
        }
        Ok(())
    }

    /// Whether the user may update the finalizers of the owner, whatever resource its kind may be.
    async fn check_owner(&self, request: Request<'_>, object: &Value, owner: &Value) -> Result<(), Status> {
        let (version, kind) = (owner.str_at(&["apiVersion"]), owner.str_at(&["kind"]));
        let listed = self.server.resources(version).await.unwrap_or_default();
        let is_it = |resource: &&Value| resource.str_at(&["kind"]) == kind && !resource.str_at(&["name"]).contains('/');
        let mut found = list(&listed, &["resources"]).iter().filter(is_it).peekable();
        if found.peek().is_none() {
            let why = format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} \
                 Kind {kind}: no matches for kind {} in version {}",
                Quoted(kind),
                Quoted(version)
            );
            return Err(request.forbidden(object, why));
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        for resource in found {
            let name = owner.str_at(&["name"]);
            let mut attributes = finalizers(request, group, version, resource.str_at(&["name"]), name);
            if resource.get("namespaced").and_then(Value::as_bool) == Some(true) {
                attributes.namespace = request.call.namespace.clone();
            }
            if let Some(why) = denied(&*self.authorizer, &attributes).await {
                let why = format!(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers \
                     on: {why}"
                );
                return Err(request.forbidden(object, why));
            }
        }
        Ok(())
    }
}

fn finalizers(request: Request<'_>, group: &str, version: &str, resource: &str, name: &str) -> Attributes {
    Attributes {
        user: request.call.user.clone(),
        verb: "update".into(),
        group: group.into(),
        version: version.into(),
        resource: resource.into(),
        subresource: Str::from("finalizers"),
        name: name.into(),
        resource_request: true,
        ..Attributes::default()
    }
}

fn owners(object: &Value) -> &[Value] {
    list(object, &["metadata", "ownerReferences"])
}

fn blocks(owner: &Value) -> bool {
    owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}

/// References that block the deletion of the owner, and did not before.
fn newly_blocking<'a>(object: &'a Value, old: Option<&Value>) -> Vec<&'a Value> {
    let before = |owner: &Value| {
        let known = old.map(owners).unwrap_or(&[]);
        known.iter().any(|other| other.str_at(&["uid"]) == owner.str_at(&["uid"]) && blocks(other))
    };
    owners(object).iter().filter(|owner| blocks(owner) && !before(owner)).collect()
}

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        // The status of a pod cannot change its owners, and old kubelets garble them.
        let is_pod_status = request.is_for_any_part("", "pods") && request.call.subresource == "status";
        let unchanged = owners(object) == request.old.map(owners).unwrap_or(&[]);
        if is_pod_status || unchanged {
            return Verdict::Idle;
        }
        Verdict::pending(self.check(request, object))
    }
}
