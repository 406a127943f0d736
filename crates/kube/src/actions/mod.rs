//! What is not a verb on a stored object: reviews of who may do what, tokens of service accounts.

mod reviews;
mod token_request;

pub use token_request::{TokenService, no_tokens};

use kubelith_auth::authz::rbac::RbacIndex;
use kubelith_auth::{Authenticator, Authorizer};
use kubelith_meta::Str;
use kubelith_server::api::Action;
use std::collections::HashMap;
use std::sync::Arc;

/// Whom reviews ask, and who gives out tokens.
#[derive(Clone)]
pub struct Access {
    pub authenticator: Arc<dyn Authenticator>,
    pub authorizer: Arc<dyn Authorizer>,
    /// Roles and bindings as they are stored, for the checks on changing them.
    pub roles: Arc<RbacIndex>,
    /// `--api-audiences`.
    pub audiences: Arc<[Str]>,
    pub tokens: TokenService,
}

/// The action of a resource of which nothing is stored.
pub fn of(access: &Access, group: &str, plural: &str) -> Option<Arc<dyn Action>> {
    reviews::of(access, group, plural)
}

/// The actions of a stored resource, by subresource.
pub fn of_subresources(access: &Access, group: &str, plural: &str) -> HashMap<Str, Arc<dyn Action>> {
    let mut actions: HashMap<Str, Arc<dyn Action>> = HashMap::new();
    if (group, plural) == ("", "serviceaccounts") {
        actions.insert("token".into(), token_request::action(access));
    }
    actions
}
