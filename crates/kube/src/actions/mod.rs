//! What is not a verb on a stored object: reviews of who may do what.

mod reviews;

use kubelith_auth::{Authenticator, Authorizer};
use kubelith_meta::Str;
use kubelith_server::api::Action;
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
