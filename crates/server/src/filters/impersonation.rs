//! Lets a user act as another, if authorization allows it (`Impersonate-User` and its companions).

use super::Layer;
use super::authorization::attributes;
use kubelith_auth::impersonation::{Impersonated, Impersonation, Modes, remove_headers, wanted_user};
use kubelith_auth::traits::UserRules;
use kubelith_auth::{Answer, Attributes, Authorizer, Decision};
use kubelith_http::latency::{Part, track};
use kubelith_http::{BoxHandler, Handler, Reply, Request, Response, respond};
use kubelith_meta::Status;
use kubelith_meta::user::User;
use kubelith_observe::metrics::impersonation::{ImpersonationMetrics, Outcome};
use std::sync::Arc;
use std::time::Instant;

struct Shared {
    authorizer: Arc<dyn Authorizer>,
    impersonation: Impersonation,
    /// Where attempts are counted; the reference does so with constrained modes only.
    metrics: Option<Arc<ImpersonationMetrics>>,
    next: BoxHandler,
}

pub fn layer(authorizer: Arc<dyn Authorizer>, modes: Modes, metrics: Arc<ImpersonationMetrics>) -> Layer {
    let metrics = (modes == Modes::All).then_some(metrics);
    Layer::new("impersonation", move |next| Link {
        shared: Arc::new(Shared { authorizer, impersonation: Impersonation::new(modes), metrics, next }),
    })
}

struct Link {
    shared: Arc<Shared>,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        if !asks(&request) {
            return self.shared.next.handle(request);
        }
        let shared = self.shared.clone();
        Reply::pending(async move { shared.handle(request).await })
    }
}

/// Whether there may be something about impersonation among the headers.
fn asks(request: &Request) -> bool {
    request.headers().keys().any(|name| name.as_str().starts_with("impersonate-"))
}

impl Shared {
    async fn handle(&self, mut request: Request) -> Response {
        let wanted = match wanted_user(request.headers()) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return self.next.handle(request).await,
            Err(status) => return refused(&request, &status),
        };
        let attributes = attributes(&request);
        match self.decide(&request, &attributes, &wanted).await {
            Ok(impersonated) => {
                tracing::debug!(user = %attributes.user.name, r#as = %impersonated.user.name, "impersonating");
                remove_headers(request.headers_mut());
                if let Some(audit) = request.audit() {
                    audit.impersonated(&impersonated.user, impersonated.constraint);
                }
                request.context_mut().user = Some(impersonated.user);
                self.next.handle(request).await
            }
            Err(status) => refused(&request, &status),
        }
    }

    async fn decide(&self, request: &Request, attributes: &Attributes, wanted: &User) -> Result<Impersonated, Status> {
        let Some(metrics) = &self.metrics else {
            return self.impersonation.impersonate(&*self.authorizer, attributes, wanted).await;
        };
        let started = Instant::now();
        let counted = Counted { authorizer: &*self.authorizer, metrics };
        let decided = self.impersonation.impersonate(&counted, attributes, wanted).await;
        let took = started.elapsed();
        track(request, Part::Impersonation, took);
        match &decided {
            Ok(impersonated) => metrics.attempted(mode(impersonated.constraint), Outcome::Allowed, took),
            Err(_) => metrics.attempted("", Outcome::Denied, took),
        }
        decided
    }
}

/// Counts what the authorizer is asked.
struct Counted<'a> {
    authorizer: &'a dyn Authorizer,
    metrics: &'a ImpersonationMetrics,
}

impl Authorizer for Counted<'_> {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        Answer::pending(async move {
            let started = Instant::now();
            let decision = self.authorizer.authorize(attributes).await;
            let outcome = if decision.allowed() { Outcome::Allowed } else { Outcome::Denied };
            self.metrics.asked(mode(&attributes.verb), outcome, started.elapsed());
            decision
        })
    }

    fn rules_for(&self, user: &User, namespace: &str) -> UserRules {
        self.authorizer.rules_for(user, namespace)
    }
}

/// The mode that a verb is for: that of `impersonate:user-info` and `impersonate-on:user-info:list` is `user-info`.
fn mode(verb: &str) -> &str {
    let mut parts = verb.split(':').skip(1);
    parts.next().unwrap_or("legacy")
}

fn refused(request: &Request, status: &Status) -> Response {
    let mut response = respond::status(request, status);
    response.headers_mut().insert(respond::X_CONTENT_TYPE_OPTIONS, respond::NOSNIFF);
    response
}
