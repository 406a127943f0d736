//! NamespaceLifecycle: nothing is written to namespaces that are not there, nothing new to those that go, and some
//! cannot go at all.

use futures::future::BoxFuture;
use kubelith_meta::status::{CAUSE_NAMESPACE_TERMINATING, Cause};
use kubelith_meta::{GroupResource, Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Admission, Operation, Request};
use kubelith_registry::objects::parse;
use memchr::memmem::Finder;
use std::sync::{Arc, LazyLock};

/// Namespaces that a cluster cannot do without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub struct NamespaceLifecycle {
    objects: Arc<Objects>,
}

impl NamespaceLifecycle {
    pub fn new(objects: Arc<Objects>) -> NamespaceLifecycle {
        NamespaceLifecycle { objects }
    }

    /// Whether the namespace takes new objects; an error if there is no such namespace.
    ///
    /// The watch cache follows every write of this server at once. What another replica did a moment ago may still be
    /// missing there: absence is therefore checked against the store.
    async fn takes_objects(&self, namespace: &str) -> Result<bool, Status> {
        let Some(found) = self.objects.find("", "namespaces", "", namespace).await? else {
            return Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace));
        };
        // Bytes first: only a namespace that mentions it can be terminating, and few do.
        let mentions = TERMINATING.find(&found.json()).is_some();
        Ok(!mentions || parse(&found).is_none_or(|ns| ns.str_at(&["status", "phase"]) != "Terminating"))
    }
}

static TERMINATING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"Terminating\""));

impl Admission for NamespaceLifecycle {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let call = request.call;
            if request.is_for_any_part("", "namespaces") {
                let deletes = request.operation == Operation::Delete;
                if deletes && IMMORTAL.contains(&call.name.as_str()) {
                    let why = "this namespace may not be deleted";
                    return Err(Status::forbidden(&call.resource, &call.name, why));
                }
                return Ok(());
            }
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            // An answer about the namespace would tell those who may not know it that it exists.
            let reviews = request.is_for("authorization.k8s.io", "localsubjectaccessreviews");
            if call.namespace.is_empty() || !writes || reviews {
                return Ok(());
            }
            let takes = self.takes_objects(&call.namespace).await?;
            if request.operation == Operation::Update || takes {
                return Ok(());
            }
            Err(terminating(request, object))
        })
    }
}

fn terminating(request: Request<'_>, object: &Value) -> Status {
    let namespace = &request.call.namespace;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = request.forbidden(object, why);
    let cause = format!("namespace {namespace} is being terminated");
    let details = status.details.get_or_insert_default();
    details.causes.push(Cause::new(CAUSE_NAMESPACE_TERMINATING, cause, "metadata.namespace"));
    status
}
