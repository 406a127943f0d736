//! Admission of roles and bindings: nobody grants what they do not have.

use futures::future::BoxFuture;
use kubelith_auth::Authorizer;
use kubelith_auth::authz::rbac::escalation::{RbacWrite, check_write};
use kubelith_auth::authz::rbac::{RBAC_GROUP, RbacIndex, RbacKind};
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::{Admission, Operation, Request};
use std::sync::Arc;

/// Stands behind mutating admission, where the reference has it, and before everything that validates.
pub struct EscalationCheck {
    kind: RbacKind,
    roles: Arc<RbacIndex>,
    authorizer: Arc<dyn Authorizer>,
    inner: Arc<dyn Admission>,
}

/// `inner` with the check, if the resource is one of roles or bindings.
pub fn guard(
    group: &str,
    plural: &str,
    roles: &Arc<RbacIndex>,
    authorizer: &Arc<dyn Authorizer>,
    inner: &Arc<dyn Admission>,
) -> Arc<dyn Admission> {
    let kinds = [RbacKind::ClusterRole, RbacKind::ClusterRoleBinding, RbacKind::Role, RbacKind::RoleBinding];
    match kinds.into_iter().find(|k| group == RBAC_GROUP && k.resource() == plural) {
        Some(kind) => Arc::new(EscalationCheck {
            kind,
            roles: roles.clone(),
            authorizer: authorizer.clone(),
            inner: inner.clone(),
        }),
        None => inner.clone(),
    }
}

impl Admission for EscalationCheck {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            self.inner.admit(request, object).await?;
            if !matches!(request.operation, Operation::Create | Operation::Update) {
                return Ok(());
            }
            // On create the request has no name for authorizers, even where the object has one.
            let name = if request.operation == Operation::Create { "" } else { request.call.name.as_str() };
            let write = RbacWrite {
                kind: self.kind,
                user: &request.call.user,
                namespace: &request.call.namespace,
                request_name: name,
                object,
                old: request.old,
            };
            check_write(&self.roles, &*self.authorizer, write).await
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        self.inner.validate(request, object)
    }
}
