//! Nobody grants what they do not have: checks before a role or binding is written.

use super::covers::{compact, uncovered};
use super::index::{RBAC_GROUP, RbacIndex, RbacKind, RoleRef};
use super::rule::PolicyRule;
use crate::text::quote_list;
use crate::traits::{Attributes, Authorizer};
use crate::user::{GROUP_MASTERS, User};
use kubelith_meta::text::quote;
use kubelith_meta::{GroupResource, Status, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A write of a role or binding, as far as these checks care.
pub struct RbacWrite<'a> {
    pub kind: RbacKind,
    pub user: &'a Arc<User>,
    /// The namespace of the request; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The name in the URL; empty on create.
    pub request_name: &'a str,
    pub object: &'a Value,
    /// `None` on create.
    pub old: Option<&'a Value>,
}

/// Fails with 403 if the write would give somebody rights that the writer lacks, unless the writer may
/// `escalate` roles or `bind` the role.
pub async fn check_write(index: &RbacIndex, authorizer: &dyn Authorizer, write: RbacWrite<'_>) -> Result<(), Status> {
    if write.user.in_group(GROUP_MASTERS) {
        return Ok(());
    }
    match write.kind {
        RbacKind::Role | RbacKind::ClusterRole => check_role(index, authorizer, &write).await,
        RbacKind::RoleBinding | RbacKind::ClusterRoleBinding => check_binding(index, authorizer, &write).await,
    }
}

async fn check_role(index: &RbacIndex, authorizer: &dyn Authorizer, write: &RbacWrite<'_>) -> Result<(), Status> {
    let escalate = Attributes {
        user: write.user.clone(),
        verb: "escalate".into(),
        group: RBAC_GROUP.into(),
        version: "*".into(),
        resource: write.kind.resource().into(),
        name: write.request_name.into(),
        namespace: write.namespace.into(),
        resource_request: true,
        ..Attributes::default()
    };
    if authorizer.authorize(&escalate).await.allowed()
        || write.old.is_some_and(|old| only_housekeeping(write.object, old))
    {
        return Ok(());
    }
    let rules = PolicyRule::list_from(write.object);
    confirm_no_escalation(index, write.user, write.namespace, &rules).map_err(|e| forbidden(write, e))?;
    let aggregates = |role: &Value| {
        let selectors = role.at(&["aggregationRule", "clusterRoleSelectors"]);
        selectors.and_then(Value::as_array).is_some_and(|s| !s.is_empty())
    };
    if aggregates(write.object) || write.old.is_some_and(aggregates) {
        // Whoever chooses what is aggregated can get any rule into the role.
        confirm_no_escalation(index, write.user, write.namespace, &full_authority())
            .map_err(|_| forbidden(write, "must have cluster-admin privileges to use the aggregationRule".into()))?;
    }
    Ok(())
}

async fn check_binding(index: &RbacIndex, authorizer: &dyn Authorizer, write: &RbacWrite<'_>) -> Result<(), Status> {
    if write.old.is_some_and(|old| only_housekeeping(write.object, old)) {
        return Ok(());
    }
    let role = RoleRef::of_binding(write.object);
    let resource = match role.kind.as_str() {
        "ClusterRole" => Some("clusterroles"),
        "Role" => Some("roles"),
        _ => None,
    };
    if let Some(resource) = resource {
        let bind = Attributes {
            user: write.user.clone(),
            verb: "bind".into(),
            group: write.object.str_at(&["roleRef", "apiGroup"]).into(),
            version: "*".into(),
            resource: resource.into(),
            name: role.name.clone(),
            namespace: write.namespace.into(),
            resource_request: true,
            ..Attributes::default()
        };
        if authorizer.authorize(&bind).await.allowed() {
            return Ok(());
        }
    }
    let rules = index.role_rules(&role, write.namespace).map_err(|e| e.to_status(write.kind))?;
    confirm_no_escalation(index, write.user, write.namespace, &rules).map_err(|e| forbidden(write, e))
}

/// Whether `user` has all of `rules` in `namespace`; if not, what is missing.
pub fn confirm_no_escalation(
    index: &RbacIndex,
    user: &User,
    namespace: &str,
    rules: &[PolicyRule],
) -> Result<(), String> {
    let (own, error) = index.rules_of(user, namespace);
    let missing = uncovered(&own, rules);
    if missing.is_empty() {
        return Ok(());
    }
    let missing: BTreeSet<String> = compact(&missing).iter().map(PolicyRule::describe).collect();
    let missing: Vec<String> = missing.into_iter().collect();
    let mut message = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        quote_list(&user.groups),
        missing.join("\n")
    );
    if let Some(error) = error {
        message.push_str(&format!("; resolution errors: [{error}]"));
    }
    Err(message)
}

fn full_authority() -> Vec<PolicyRule> {
    let all = || vec!["*".into()];
    vec![
        PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() },
        PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() },
    ]
}

/// An update that changes nothing but what the garbage collector changes needs no rights to what the object says.
pub fn only_housekeeping(new: &Value, old: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            object.remove_at(&["metadata", field]);
        }
        drop_empty(&mut object);
        object
    };
    stripped(new) == stripped(old)
}

/// Absent, null and empty lists and objects are the same here.
pub fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|_, v| {
            drop_empty(v);
            match v {
                Value::Null => false,
                Value::Array(_) | Value::Object(_) => !v.is_empty(),
                _ => true,
            }
        }),
        Value::Array(list) => list.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

fn forbidden(write: &RbacWrite<'_>, why: String) -> Status {
    let resource = GroupResource::new(RBAC_GROUP, write.kind.resource());
    Status::forbidden(&resource, write.object.str_at(&["metadata", "name"]), why)
}

#[cfg(test)]
#[path = "escalation_tests.rs"]
mod tests;
