//! Plugins one after another: the first refusal ends the request.

use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Admission, Request};
use std::sync::Arc;

/// Runs its plugins in order, each seeing what those before it made of the object.
pub struct Chain {
    pub objects: Arc<Objects>,
    pub plugins: Vec<Box<dyn Admission>>,
}

impl Admission for Chain {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            // Plugins judge by what the caches hold.
            self.objects.caught_up().await;
            for plugin in &self.plugins {
                plugin.admit(request, object).await?;
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            for plugin in &self.plugins {
                plugin.validate(request, object).await?;
            }
            Ok(())
        })
    }
}
