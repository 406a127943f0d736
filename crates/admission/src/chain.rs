//! Plugins one after another: the first refusal ends the request.

use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::{Admission, Request};

/// Runs its plugins in order, each seeing what those before it made of the object.
#[derive(Default)]
pub struct Chain(pub Vec<Box<dyn Admission>>);

impl Admission for Chain {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            for plugin in &self.0 {
                plugin.admit(request, object).await?;
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            for plugin in &self.0 {
                plugin.validate(request, object).await?;
            }
            Ok(())
        })
    }
}
