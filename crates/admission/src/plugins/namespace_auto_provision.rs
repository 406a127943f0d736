//! NamespaceAutoProvision: who writes into a namespace that is not there gets it.

use super::is_of_namespace;
use crate::loopback::Loopback;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::Collection;
use std::sync::Arc;

pub struct NamespaceAutoProvision {
    namespaces: Collection,
    server: Arc<dyn Loopback>,
}

impl NamespaceAutoProvision {
    pub fn new(objects: &Arc<Objects>, server: Arc<dyn Loopback>) -> NamespaceAutoProvision {
        NamespaceAutoProvision { namespaces: objects.of("", "namespaces"), server }
    }
}

impl Plugin for NamespaceAutoProvision {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        let (call, namespace) = (request.call, request.call.namespace.as_str());
        let exists = || self.namespaces.cached("", namespace).is_some();
        if call.dry_run() || namespace.is_empty() || is_of_namespace(call) || exists() {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            match self.server.create_namespace(namespace).await {
                Err(why) if !why.is_already_exists() => Err(request.forbidden(object, why.message)),
                _ => Ok(()),
            }
        })
    }
}
