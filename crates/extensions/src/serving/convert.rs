//! Between the versions of a custom resource.

use super::schemas::Schemas;
use futures::future::BoxFuture;
use kubelith_codec::json::Strictness;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::Conversion;
use std::sync::Arc;

/// `strategy: None`: only apiVersion changes. What the other version does not know goes.
pub struct Renaming(pub Arc<Schemas>);

impl Conversion for Renaming {
    fn generation(&self) -> i64 {
        self.0.generation
    }

    fn convert<'a>(&'a self, mut object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value, Status>> {
        // A client may have made it something else altogether, which validation will say.
        if object.gvk().group != to.group {
            return Box::pin(std::future::ready(Ok(object)));
        }
        let from = object.gvk().group_version();
        if self.0.of(&from.version).is_none() {
            let why = format!("request to convert CR from an invalid group/version: {from}");
            return Box::pin(std::future::ready(Err(Status::unknown(why))));
        }
        object.set_at(&["apiVersion"], to.api_version().into());
        self.0.tidy(&mut object, Strictness::Lenient);
        Box::pin(std::future::ready(Ok(object)))
    }
}

/// The same without pruning: field ownership is looked up in the other version as if it knew all fields. Where it does
/// not, ownership is lost, as in the reference.
pub fn rename(mut object: Value, to: &GroupVersionKind) -> Result<Value, String> {
    object.set_at(&["apiVersion"], to.api_version().into());
    Ok(object)
}
