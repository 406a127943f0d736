//! What is not a verb on a stored object: reviews of who may do what, tokens of service accounts, bindings and evictions
//! of pods, and how components are.

mod components;
mod pods;
mod reviews;
mod token_request;

pub use token_request::{TokenService, no_tokens};

use kubelith_auth::authz::rbac::RbacIndex;
use kubelith_auth::{Authenticator, Authorizer};
use kubelith_handlers::api::{Action, Routes};
use kubelith_meta::{Clock, GroupVersion, Str, Value};
use kubelith_registry::admission::Admission;
use kubelith_rules::Env;
use kubelith_store::cache::Hub;
use std::collections::HashMap;
use std::sync::Arc;

/// Whom reviews ask, and who gives out tokens.
#[derive(Clone)]
pub struct Access {
    pub authenticator: Arc<dyn Authenticator>,
    pub authorizer: Arc<dyn Authorizer>,
    /// Roles and bindings as they are stored, for the checks on changing them.
    pub roles: Arc<RbacIndex>,
    /// Whether roles are an authorizer here: then those that every cluster has are kept.
    pub uses_roles: bool,
    /// `--api-audiences`.
    pub audiences: Arc<[Str]>,
    pub tokens: TokenService,
    pub clock: Arc<dyn Clock>,
}

/// The action of a resource of which nothing is stored.
pub fn of(
    access: &Access,
    admission: &Arc<dyn Admission>,
    hub: &Arc<Hub>,
    group: &str,
    plural: &str,
) -> Option<Arc<dyn Action>> {
    reviews::of(access, admission, group, plural).or_else(|| components::of(hub, group, plural))
}

/// Adds the actions that concern stored pods, once everything stored is there.
pub fn install(routes: &mut Routes, env: &Arc<Env>) {
    let core = GroupVersion::new("", "v1");
    let endpoint = |version: &GroupVersion, plural: &str| routes.versions.get(version)?.get(plural)?.endpoint.clone();
    let Some(pods) = endpoint(&core, "pods").map(|e| e.resource.clone()) else { return };
    let budgets = endpoint(&GroupVersion::new("policy", "v1"), "poddisruptionbudgets");
    let Some(served) = routes.versions.get_mut(&core) else { return };
    let bind: Arc<dyn Action> = Arc::new(pods::Bind { pods: pods.clone(), env: env.clone() });
    if let Some(bindings) = served.get_mut("bindings") {
        bindings.action = Some(bind.clone());
    }
    if let Some(of_pods) = served.get_mut("pods") {
        of_pods.actions.insert("binding".into(), bind);
        if let Some(budgets) = budgets {
            of_pods.actions.insert("eviction".into(), Arc::new(pods::Evict { pods, budgets }));
        }
    }
}

/// Takes away what a client cannot say of an object that it creates.
fn wipe_system_fields(object: &mut Value) {
    const FIELDS: [&str; 5] =
        ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];
    for field in FIELDS {
        object.remove_at(&["metadata", field]);
    }
}

/// The actions of a stored resource, by subresource.
pub fn of_subresources(access: &Access, group: &str, plural: &str) -> HashMap<Str, Arc<dyn Action>> {
    let mut actions: HashMap<Str, Arc<dyn Action>> = HashMap::new();
    if (group, plural) == ("", "serviceaccounts") {
        actions.insert("token".into(), token_request::action(access));
    }
    actions
}
