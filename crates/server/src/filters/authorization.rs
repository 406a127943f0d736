//! Lets a request on if its user may do what it asks; else 403 with who, what and why.

use super::Layer;
use kubelith_auth::forbidden::forbidden_detail;
use kubelith_auth::traits::Selector;
use kubelith_auth::{Answer, Attributes, Authorizer, Decision};
use kubelith_http::latency::{Part, track};
use kubelith_http::{BoxHandler, Handler, Reply, Request, Response, respond};
use kubelith_meta::{GroupResource, Status};
use kubelith_observe::metrics::auth::AuthMetrics;
use kubelith_observe::recent::Recent;
use std::sync::Arc;
use std::time::Instant;

/// Annotations of the audit log.
const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

struct Authorization {
    authorizer: Arc<dyn Authorizer>,
    metrics: Arc<AuthMetrics>,
    recent: Arc<Recent>,
    next: BoxHandler,
}

pub fn layer(authorizer: Arc<dyn Authorizer>, metrics: Arc<AuthMetrics>, recent: Arc<Recent>) -> Layer {
    Layer::new("authorization", |next| Link { inner: Arc::new(Authorization { authorizer, metrics, recent, next }) })
}

struct Link {
    inner: Arc<Authorization>,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let attributes = attributes(&request);
        let started = Instant::now();
        // Most decisions are made from memory, without a future of their own.
        if let Answer::Ready(decision) = self.inner.authorizer.authorize(&attributes) {
            return self.inner.act(request, &attributes, decision, started);
        }
        let inner = self.inner.clone();
        Reply::pending(async move {
            let decision = inner.authorizer.authorize(&attributes).await;
            inner.act(request, &attributes, decision, started).await
        })
    }
}

impl Authorization {
    fn act(&self, mut request: Request, attributes: &Attributes, decision: Decision, started: Instant) -> Reply {
        let took = started.elapsed();
        track(&request, Part::Authorization, took);
        self.metrics.authorized(&decision, took);
        let audit = request.audit();
        if decision.allowed() {
            if let Some(audit) = audit {
                audit.annotate(DECISION, "allow");
                audit.annotate(REASON, decision.reason);
            }
            request.context_mut().authorizer = Some(self.authorizer.clone());
            return self.next.handle(request);
        }
        if let Some(audit) = audit {
            match &decision.error {
                Some(_) => audit.annotate(REASON, "internal error"),
                None => {
                    audit.annotate(DECISION, "forbid");
                    audit.annotate(REASON, decision.reason.clone());
                }
            }
        }
        let response = match decision.error {
            Some(why) => {
                tracing::error!(err = %why, "authorization failed");
                respond::internal_error(&request.uri().to_string(), why)
            }
            None => {
                self.recent.denied(request.user(), request.info(), &decision.reason);
                forbidden(&request, attributes, &decision.reason)
            }
        };
        Reply::Ready(response)
    }
}

fn forbidden(request: &Request, attributes: &Attributes, reason: &str) -> Response {
    let resource = GroupResource::new(attributes.group.clone(), attributes.resource.clone());
    let status = Status::forbidden(&resource, &attributes.name, forbidden_detail(attributes, reason));
    let mut response = respond::status(request, &status);
    response.headers_mut().insert(respond::X_CONTENT_TYPE_OPTIONS, respond::NOSNIFF);
    response
}

/// What the request wants, in the words of authorizers.
pub fn attributes(request: &Request) -> Attributes {
    let info = request.info();
    Attributes {
        user: request.user().cloned().unwrap_or_default(),
        verb: info.verb.clone(),
        namespace: info.namespace.clone(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        name: info.name.clone(),
        path: info.path.clone(),
        resource_request: info.is_resource_request,
        field_selector: selector(&info.field_selector, Selector::parse_fields),
        label_selector: selector(&info.label_selector, Selector::parse_labels),
    }
}

/// Nearly all requests have none.
fn selector(text: &str, parse: impl FnOnce(&str) -> Selector) -> Selector {
    if text.is_empty() { Selector::default() } else { parse(text) }
}
