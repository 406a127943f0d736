//! `serviceaccounts/token`: a token for a service account is created, and comes back in the request's status.

use super::Access;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::StatusCode;
use kubelith_auth::reviews::token_request::TokenRequests;
use kubelith_handlers::api::{Action, ActionCall};
use kubelith_http::Response;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::admission::Operation;
use kubelith_registry::{Call, Mode};
use std::sync::Arc;

/// What gives out tokens, once its key is there: a key of our own is made while the server starts.
pub type TokenService = Shared<BoxFuture<'static, Result<Arc<TokenRequests>, Arc<str>>>>;

/// For servers that give out no tokens.
pub fn no_tokens() -> TokenService {
    let nobody: BoxFuture<'static, _> = Box::pin(std::future::ready(Err(Arc::from("no key signs tokens here"))));
    nobody.shared()
}

/// How long a token lives if the request does not say.
const DEFAULT_SECONDS: i64 = 3600;

struct TokenAction {
    tokens: TokenService,
}

pub fn action(access: &Access) -> Arc<dyn Action> {
    Arc::new(TokenAction { tokens: access.tokens.clone() })
}

impl Action for TokenAction {
    fn run(&self, call: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        Box::pin(run(call, self.tokens.clone()))
    }
}

async fn run(mut call: ActionCall, tokens: TokenService) -> Result<Response, Status> {
    let kind = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest");
    let mut object = call.decode(&kind).await?;
    let namespace = object.str_at(&["metadata", "namespace"]);
    if !namespace.is_empty() && namespace != call.info.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if object.at(&["spec", "expirationSeconds"]).is_none_or(Value::is_null) {
        object.set_at(&["spec", "expirationSeconds"], DEFAULT_SECONDS.into());
    }
    let endpoint = call.endpoint.clone().ok_or_else(|| Status::internal_error("service accounts are not stored"))?;
    object = call.track_create(&kind, object, endpoint.resource.clock.now())?;
    let admission = &endpoint.resource.admission;
    let asked = Call {
        verb: call.info.verb.clone(),
        user: call.user.clone(),
        resource: endpoint.resource.descriptor.group_resource(),
        version: call.info.version.clone(),
        kind: kind.clone(),
        namespace: call.info.namespace.clone(),
        name: call.info.name.clone(),
        subresource: call.info.subresource.clone(),
        mode: Mode::Real,
        deadline: call.request.deadline().map(Into::into),
        warnings: call.warnings.clone(),
    };
    let request = endpoint.resource.asks(&asked, Operation::Create, None, None);
    admission.admit(request, &mut object).await?;

    let tokens = tokens.await.map_err(Status::internal_error)?;
    let object = tokens.prepare(object, &call.info.namespace, &call.info.name).await?;
    admission.validate(request, &object).await?;
    let (object, notes) = tokens.issue(object).await?;
    notes.warnings.into_iter().for_each(|warning| call.warnings.add(warning));
    call.annotate(notes.annotations);
    call.answer(StatusCode::CREATED, object)
}
