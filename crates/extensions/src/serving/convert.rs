//! Between the versions of a custom resource.

use super::schemas::Schemas;
use futures::future::BoxFuture;
use kubelith_codec::json::Strictness;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::Conversion;
use std::sync::Arc;

/// `strategy: None`: only apiVersion changes. What the other version does not know goes.
pub struct Renaming(pub Arc<Schemas>);

impl Renaming {
    pub fn convert_now(&self, mut object: Value, to: &GroupVersionKind) -> Value {
        object.set_at(&["apiVersion"], to.api_version().into());
        self.0.tidy(&mut object, Strictness::Lenient);
        object
    }
}

impl Conversion for Renaming {
    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(Ok(self.convert_now(object, to))))
    }
}
