//! Lets a user act as another, if authorization allows it (`Impersonate-User` and its companions).

use super::Layer;
use super::authorization::attributes;
use kubelith_auth::Authorizer;
use kubelith_auth::impersonation::{Impersonation, Modes, remove_headers, wanted_user};
use kubelith_http::{BoxHandler, Handler, Reply, Request, Response, respond};
use kubelith_meta::Status;
use std::sync::Arc;

struct Shared {
    authorizer: Arc<dyn Authorizer>,
    impersonation: Impersonation,
    next: BoxHandler,
}

pub fn layer(authorizer: Arc<dyn Authorizer>, modes: Modes) -> Layer {
    Layer::new("impersonation", move |next| Link {
        shared: Arc::new(Shared { authorizer, impersonation: Impersonation::new(modes), next }),
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
        match self.impersonation.impersonate(&*self.authorizer, &attributes, &wanted).await {
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
}

fn refused(request: &Request, status: &Status) -> Response {
    let mut response = respond::status(request, status);
    response.headers_mut().insert(respond::X_CONTENT_TYPE_OPTIONS, respond::NOSNIFF);
    response
}
