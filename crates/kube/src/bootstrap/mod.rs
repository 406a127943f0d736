//! Objects that every server has: made after the start, kept as they must be, through the server's own front door.

mod namespaces;
mod priority;
mod roles;

use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};

/// The post-start hooks of the built-in groups, in the order in which health lists them.
pub fn hooks() -> Vec<PostStartHook> {
    vec![namespaces::hook(), roles::hook(), priority::hook()]
}

/// Creates an object unless there is one of its name.
pub(crate) async fn ensure(
    client: &LoopbackClient,
    resource: &GroupVersionResource,
    object: &Value,
) -> Result<(), Status> {
    let meta = object.meta();
    let target = ResourceRef::new(resource).namespace(meta.namespace());
    match client.create(&target, object).await {
        Err(status) if !status.is_already_exists() => Err(status),
        _ => Ok(()),
    }
}
