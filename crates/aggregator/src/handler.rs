//! The aggregator as a link of the server chain: requests for what other servers serve go to them.

use crate::resolve::Resolver;
use crate::routes::{Backend, Routes};
use http::StatusCode;
use http::uri::PathAndQuery;
use kubelith_http::{BoxHandler, Handler, Reply, Request, Response, respond};
use kubelith_outbound::proxy::{
    Forward, HostHeader, Identity, Origin, Redirects, Target, canonical_query, encode_path, forward,
};
use std::sync::Arc;
use std::time::Duration;

/// A discovery document is small and everybody waits for it.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Who has a document of OpenAPI, by its path.
pub type FindDocument = Box<dyn Fn(&str) -> Option<Arc<Backend>> + Send + Sync>;

/// Sends requests to backends.
pub struct Proxy {
    pub routes: Arc<Routes>,
    pub resolver: Arc<Resolver>,
    pub redirects: Redirects,
    pub identity: Identity,
    /// Serves `/openapi/v3/<path>` for these paths at another server.
    pub openapi_paths: FindDocument,
}

/// The proxy with what comes after it.
pub struct Link {
    pub proxy: Arc<Proxy>,
    pub next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let path = request.info().path.as_str();
        let backend = match path.strip_prefix("/openapi/v3/") {
            Some(document) => (self.proxy.openapi_paths)(document),
            None => self.proxy.routes.of_path(path),
        };
        let Some(backend) = backend else { return self.next.handle(request) };
        let proxy = self.proxy.clone();
        Reply::pending(async move { proxy.pass(&backend, request).await })
    }
}

impl Proxy {
    async fn pass(&self, backend: &Backend, request: Request) -> Response {
        if !backend.available {
            return unavailable("service unavailable");
        }
        let transport = match &backend.transport {
            Ok(transport) => transport,
            Err(why) => return respond::error_text(StatusCode::INTERNAL_SERVER_ERROR, why),
        };
        let Some(user) = request.user().cloned() else {
            return respond::error_text(StatusCode::INTERNAL_SERVER_ERROR, "missing user");
        };
        let authority = match self.resolver.resolve(&backend.service) {
            Ok(authority) => authority,
            Err(why) => {
                let service = &backend.service;
                tracing::error!(err = %why, "error resolving {}/{}", service.namespace, service.name);
                return unavailable("service unavailable");
            }
        };
        let Some(path_and_query) = path_and_query(&request) else {
            return respond::error_text(StatusCode::BAD_REQUEST, "invalid path");
        };
        let target = Target { authority, path_and_query };
        let limit = is_discovery(&request).then_some(DISCOVERY_TIMEOUT);
        let how = Forward {
            user: Some((user, self.identity)),
            redirects: self.redirects,
            host: HostHeader::Server,
            origin: Origin::Server,
        };
        let passed = forward(transport, target, request, &how);
        let outcome = match limit {
            None => passed.await,
            Some(limit) => match tokio::time::timeout(limit, passed).await {
                Ok(outcome) => outcome,
                Err(_) => return unavailable("error trying to reach service: context deadline exceeded"),
            },
        };
        outcome.unwrap_or_else(unavailable)
    }
}

pub fn unavailable(why: impl std::fmt::Display) -> Response {
    respond::error_text(StatusCode::SERVICE_UNAVAILABLE, why)
}

/// `/apis/<group>/<version>`.
fn is_discovery(request: &Request) -> bool {
    let info = request.info();
    !info.is_resource_request && info.path.trim_matches('/').split('/').count() == 3
}

/// The path and query that were authorized, not another spelling of them.
pub fn path_and_query(request: &Request) -> Option<PathAndQuery> {
    let uri = request.uri();
    if !uri.path().contains('%') && uri.query().is_none() {
        return uri.path_and_query().cloned();
    }
    let mut text = encode_path(&request.info().path);
    let query = uri.query().map(canonical_query).unwrap_or_default();
    if !query.is_empty() {
        text.push('?');
        text.push_str(&query);
    }
    PathAndQuery::from_maybe_shared(text.into_bytes()).ok()
}
