//! Reviews: a question is created, and its answer comes back in its status.

use super::Access;
use futures::future::BoxFuture;
use http::StatusCode;
use kubelith_auth::reviews::access::AccessReviewKind;
use kubelith_auth::reviews::{self, access, rules, token};
use kubelith_meta::time::{Clock, SystemClock};
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_server::Response;
use kubelith_server::api::{Action, ActionCall};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Review {
    Access(AccessReviewKind),
    Rules,
    Token,
    Myself,
}

struct ReviewAction {
    review: Review,
    kind: &'static str,
    access: Access,
}

pub fn of(access: &Access, group: &str, plural: &str) -> Option<Arc<dyn Action>> {
    let (review, kind) = match (group, plural) {
        ("authorization.k8s.io", "subjectaccessreviews") => {
            (Review::Access(AccessReviewKind::Subject), "SubjectAccessReview")
        }
        ("authorization.k8s.io", "localsubjectaccessreviews") => {
            (Review::Access(AccessReviewKind::LocalSubject), "LocalSubjectAccessReview")
        }
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            (Review::Access(AccessReviewKind::SelfSubject), "SelfSubjectAccessReview")
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => (Review::Rules, "SelfSubjectRulesReview"),
        ("authentication.k8s.io", "tokenreviews") => (Review::Token, "TokenReview"),
        ("authentication.k8s.io", "selfsubjectreviews") => (Review::Myself, "SelfSubjectReview"),
        _ => return None,
    };
    Some(Arc::new(ReviewAction { review, kind, access: access.clone() }))
}

impl Action for ReviewAction {
    fn run(&self, call: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        let kind = GroupVersionKind::new(call.info.group.clone(), call.info.version.clone(), self.kind);
        let (review, access) = (self.review, self.access.clone());
        Box::pin(run(call, kind, review, access))
    }
}

async fn run(mut call: ActionCall, kind: GroupVersionKind, review: Review, to: Access) -> Result<Response, Status> {
    let mut object = call.decode(&kind).await?;
    super::wipe_system_fields(&mut object);
    place(&mut object, &call.info.namespace)?;
    if review != Review::Myself {
        object = call.track_create(&kind, object, SystemClock.now())?;
    }
    match review {
        Review::Access(which) => {
            access::validate(which, &object, &call.info.namespace)?;
            access::evaluate(which, &mut object, &call.user, &*to.authorizer).await;
        }
        Review::Rules => {
            rules::validate(&object)?;
            object = rules::evaluate(&object, &call.user, &*to.authorizer);
        }
        Review::Token => {
            token::validate(&object)?;
            token::evaluate(&mut object, &*to.authenticator, &to.audiences).await?;
        }
        Review::Myself => object = reviews::self_subject_review(&object, &call.user, &SystemClock.now().rfc3339()),
    }
    call.answer(StatusCode::CREATED, typed(object, &kind))
}

/// Like every object, the question is in the namespace of the request, or in none.
fn place(object: &mut Value, namespace: &str) -> Result<(), Status> {
    let given = object.meta().namespace();
    if given == namespace {
        return Ok(());
    }
    if !given.is_empty() && !namespace.is_empty() {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    object.remove_at(&["metadata", "namespace"]);
    if !namespace.is_empty() {
        object.meta_mut().set_namespace(namespace);
    }
    Ok(())
}

/// The answer is of the question's kind.
fn typed(mut object: Value, kind: &GroupVersionKind) -> Value {
    object.set_at(&["apiVersion"], kind.api_version().into());
    object.set_at(&["kind"], Value::String(kind.kind.clone()));
    object
}
