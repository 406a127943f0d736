//! Reviews: a question is created, and its answer comes back in its status.

use super::Access;
use futures::future::BoxFuture;
use http::StatusCode;
use kubelith_auth::reviews::access::AccessReviewKind;
use kubelith_auth::reviews::{self, access, rules, token};
use kubelith_handlers::api::{Action, ActionCall};
use kubelith_http::Response;
use kubelith_meta::{GroupResource, GroupVersionKind, Status, Value};
use kubelith_registry::admission::{Admission, Operation, Request};
use kubelith_registry::{Call, Mode};
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
    plural: &'static str,
    access: Access,
    admission: Arc<dyn Admission>,
}

pub fn of(access: &Access, admission: &Arc<dyn Admission>, group: &str, plural: &str) -> Option<Arc<dyn Action>> {
    let (review, kind, plural) = match (group, plural) {
        ("authorization.k8s.io", "subjectaccessreviews") => {
            (Review::Access(AccessReviewKind::Subject), "SubjectAccessReview", "subjectaccessreviews")
        }
        ("authorization.k8s.io", "localsubjectaccessreviews") => {
            let review = Review::Access(AccessReviewKind::LocalSubject);
            (review, "LocalSubjectAccessReview", "localsubjectaccessreviews")
        }
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            let review = Review::Access(AccessReviewKind::SelfSubject);
            (review, "SelfSubjectAccessReview", "selfsubjectaccessreviews")
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            (Review::Rules, "SelfSubjectRulesReview", "selfsubjectrulesreviews")
        }
        ("authentication.k8s.io", "tokenreviews") => (Review::Token, "TokenReview", "tokenreviews"),
        ("authentication.k8s.io", "selfsubjectreviews") => (Review::Myself, "SelfSubjectReview", "selfsubjectreviews"),
        _ => return None,
    };
    let (access, admission) = (access.clone(), admission.clone());
    Some(Arc::new(ReviewAction { review, kind, plural, access, admission }))
}

impl Action for ReviewAction {
    fn run(&self, call: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        let kind = GroupVersionKind::new(call.info.group.clone(), call.info.version.clone(), self.kind);
        let asked = Asked {
            resource: GroupResource::new(call.info.group.clone(), self.plural),
            kind,
            admission: self.admission.clone(),
        };
        Box::pin(run(call, asked, self.review, self.access.clone()))
    }
}

/// What is created, and who may mind.
struct Asked {
    resource: GroupResource,
    kind: GroupVersionKind,
    admission: Arc<dyn Admission>,
}

impl Asked {
    fn call(&self, call: &ActionCall, object: &Value, mode: Mode) -> Call {
        Call {
            verb: call.info.verb.clone(),
            user: call.user.clone(),
            resource: self.resource.clone(),
            version: call.info.version.clone(),
            kind: self.kind.clone(),
            namespace: call.info.namespace.clone(),
            name: object.str_at(&["metadata", "name"]).into(),
            subresource: call.info.subresource.clone(),
            mode,
            deadline: call.request.deadline().map(Into::into),
            warnings: call.warnings.clone(),
        }
    }
}

async fn run(mut call: ActionCall, asked: Asked, review: Review, to: Access) -> Result<Response, Status> {
    let kind = &asked.kind;
    let (mut object, options) = call.decode_create(std::slice::from_ref(kind)).await?;
    super::wipe_system_fields(&mut object);
    place(&mut object, &call.info.namespace)?;
    if review != Review::Myself {
        object = call.track_create(kind, object, to.clock.now())?;
    }
    let about = asked.call(&call, &object, options.mode);
    let options = Some(&options.object);
    let request = Request { options, ..Request::new(&about, Operation::Create) };
    asked.admission.admit(request, &mut object).await?;
    match review {
        Review::Access(which) => {
            access::validate(which, &object, &call.info.namespace)?;
            asked.admission.validate(request, &object).await?;
            access::evaluate(which, &mut object, &call.user, &*to.authorizer).await;
        }
        Review::Rules => {
            rules::validate(&object)?;
            asked.admission.validate(request, &object).await?;
            object = rules::evaluate(&object, &call.user, &*to.authorizer);
        }
        Review::Token => {
            token::validate(&object)?;
            asked.admission.validate(request, &object).await?;
            token::evaluate(&mut object, &*to.authenticator, &to.audiences).await?;
        }
        Review::Myself => {
            asked.admission.validate(request, &object).await?;
            object = reviews::self_subject_review(&object, &call.user, &to.clock.now().rfc3339());
        }
    }
    call.answer(StatusCode::CREATED, typed(object, kind))
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
