//! What is not a verb on a stored object: reviews of who may do what, bindings and evictions of pods.

mod pods;
mod reviews;

use kubelith_auth::{Authenticator, Authorizer};
use kubelith_meta::{GroupVersion, Str};
use kubelith_server::api::{Action, Routes};
use std::sync::Arc;

/// Whom reviews ask.
#[derive(Clone)]
pub struct Access {
    pub authenticator: Arc<dyn Authenticator>,
    pub authorizer: Arc<dyn Authorizer>,
    /// `--api-audiences`.
    pub audiences: Arc<[Str]>,
}

/// The action of a resource of which nothing is stored.
pub fn of(access: &Access, group: &str, plural: &str) -> Option<Arc<dyn Action>> {
    reviews::of(access, group, plural)
}

/// Adds the actions that concern stored pods, once everything stored is there.
pub fn install(routes: &mut Routes) {
    let core = GroupVersion::new("", "v1");
    let endpoint = |version: &GroupVersion, plural: &str| routes.versions.get(version)?.get(plural)?.endpoint.clone();
    let Some(pods) = endpoint(&core, "pods").map(|e| e.resource.clone()) else { return };
    let budgets = endpoint(&GroupVersion::new("policy", "v1"), "poddisruptionbudgets");
    let Some(served) = routes.versions.get_mut(&core) else { return };
    let bind: Arc<dyn Action> = Arc::new(pods::Bind { pods: pods.clone() });
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
