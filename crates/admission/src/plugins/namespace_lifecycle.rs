//! NamespaceLifecycle: nothing is written to namespaces that are not there, nothing new to those that go, and some
//! cannot go at all.

use crate::plugin::{Plugin, Verdict};
use kubelith_meta::names::{NameUse, name_is_path_segment};
use kubelith_meta::status::{CAUSE_NAMESPACE_TERMINATING, Cause};
use kubelith_meta::text::Quoted;
use kubelith_meta::{GroupResource, Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::{CachedObject, Collection, parse};
use memchr::memmem::Finder;
use std::sync::{Arc, LazyLock};

/// Namespaces that a cluster cannot do without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub struct NamespaceLifecycle {
    namespaces: Collection,
}

impl NamespaceLifecycle {
    pub fn new(objects: &Arc<Objects>) -> NamespaceLifecycle {
        NamespaceLifecycle { namespaces: objects.of("", "namespaces") }
    }
}

/// Whether the namespace takes new objects.
fn takes_objects(namespace: &CachedObject) -> bool {
    // Bytes first: only a namespace that mentions it can be terminating, and few do.
    let mentions = TERMINATING.find(&namespace.json()).is_some();
    !mentions || parse(namespace).is_none_or(|ns| ns.str_at(&["status", "phase"]) != "Terminating")
}

static TERMINATING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"Terminating\""));

impl Plugin for NamespaceLifecycle {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        let call = request.call;
        if request.is_for_any_part("", "namespaces") {
            let deletes = request.operation == Operation::Delete;
            if deletes && IMMORTAL.contains(&call.name.as_str()) {
                let why = "this namespace may not be deleted";
                return Verdict::Ready(Err(Status::forbidden(&call.resource, &call.name, why)));
            }
            return Verdict::Idle;
        }
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        // An answer about the namespace would tell those who may not know it that it exists.
        let reviews = request.is_for("authorization.k8s.io", "localsubjectaccessreviews");
        if call.namespace.is_empty() || !writes || reviews {
            return Verdict::Idle;
        }
        if let Some(found) = self.namespaces.cached("", &call.namespace) {
            return Verdict::Ready(judge(request, object, &found));
        }
        // The watch cache follows every write of this server at once. What another replica did a moment ago may still be
        // missing there: absence is therefore checked against the store.
        if let problems @ [_, ..] = &name_is_path_segment(&call.namespace, NameUse::Full)[..] {
            let (name, problems) = (Quoted(&call.namespace), problems.join(" "));
            return Verdict::Ready(Err(Status::internal_error(format!("invalid resource name {name}: [{problems}]"))));
        }
        Verdict::pending(async move {
            match self.namespaces.live("", &call.namespace).await? {
                Some(found) => judge(request, object, &found),
                None => Err(Status::not_found(&GroupResource::new("", "namespaces"), &call.namespace)),
            }
        })
    }
}

fn judge(request: Request<'_>, object: &Value, namespace: &CachedObject) -> Result<(), Status> {
    match request.operation == Operation::Update || takes_objects(namespace) {
        true => Ok(()),
        false => Err(terminating(request, object)),
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
