//! The kube server: the built-in groups and the objects that every cluster has.

use super::{Builtin, Shared};
use kubelith_kube::bootstrap;
use kubelith_server::Delegate;
use kubelith_server::api::Api;
use kubelith_server::discovery::Source;
use kubelith_server::openapi::Subject;

pub fn server(shared: &Shared<'_>, builtin: Builtin, next: Delegate) -> Delegate {
    shared.discovery.set(Source::BuiltIn, builtin.entries);
    shared.openapi.put(Subject::of_routes(&builtin.routes));
    next.behind(|next| Api::new(builtin.routes, next)).post_start_hooks(bootstrap::hooks())
}
