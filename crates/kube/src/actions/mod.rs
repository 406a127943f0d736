//! What is not a verb on a stored object: reviews of who may do what, and how components are.

mod components;
mod reviews;

use kubelith_auth::{Authenticator, Authorizer};
use kubelith_meta::Str;
use kubelith_server::api::Action;
use kubelith_server::handlers::FieldTracker;
use kubelith_store::cache::Hub;
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
pub fn of(
    access: &Access,
    hub: &Arc<Hub>,
    group: &str,
    plural: &str,
    fields: Arc<dyn FieldTracker>,
) -> Option<Arc<dyn Action>> {
    reviews::of(access, group, plural, fields).or_else(|| components::of(hub, group, plural))
}
