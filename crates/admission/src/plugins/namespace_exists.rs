//! NamespaceExists: nothing is done in a namespace that is not there.

use super::is_of_namespace;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::{GroupResource, Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::Collection;
use std::sync::Arc;

pub struct NamespaceExists {
    namespaces: Collection,
}

impl NamespaceExists {
    pub fn new(objects: &Arc<Objects>) -> NamespaceExists {
        NamespaceExists { namespaces: objects.of("", "namespaces") }
    }
}

impl Plugin for NamespaceExists {
    fn validate<'a>(&'a self, request: Request<'a>, _: &'a Value) -> Verdict<'a> {
        let namespace = request.call.namespace.as_str();
        if namespace.is_empty() || is_of_namespace(request.call) || self.namespaces.cached("", namespace).is_some() {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            match self.namespaces.live("", namespace).await {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace)),
                Err(why) => Err(Status::internal_error(why.message)),
            }
        })
    }
}
