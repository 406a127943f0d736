//! The link of the server chain that serves custom resources. What it does not know is left to the next one.

use crate::Config;
use crate::serving::{Serving, Table};
use futures::future::BoxFuture;
use kubelith_meta::{GroupResource, Status, Str};
use kubelith_schema::Scope;
use kubelith_server::api::{Asked, answer};
use kubelith_server::handlers::{self, Context};
use kubelith_server::http::{BoxHandler, Handler, Request, Response};
use kubelith_server::request_info::RequestInfo;
use std::sync::Arc;

pub struct Link {
    pub config: Arc<Config>,
    pub table: Arc<Table>,
    pub next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> BoxFuture<'static, Response> {
        let info = request.extensions().get::<Arc<RequestInfo>>().cloned();
        let Some(info) = info.filter(|i| i.is_resource_request && !i.group.is_empty()) else {
            return self.next.handle(request);
        };
        let (config, table, next) = (self.config.clone(), self.table.clone(), self.next.clone());
        Box::pin(async move {
            // A definition that was acknowledged, by whatever server, counts from then on.
            let serving = match config.hub.fresh().await {
                Ok(_) => table.get(&format!("{}.{}", info.resource, info.group)).await,
                Err(why) => Err(Status::internal_error(why)),
            };
            match serving {
                Ok(Some(serving)) if serves(&serving, &info) => serve(serving, info, request).await,
                Ok(_) => next.handle(request).await,
                Err(status) => answer(request, |_, _| async { Err(status) }).await,
            }
        })
    }
}

/// Whether the path leads to the resource: its version is served, and it has a namespace where there must be one.
fn serves(serving: &Serving, info: &RequestInfo) -> bool {
    let descriptor = &serving.built.descriptor;
    let namespaced = descriptor.scope == Scope::Namespaced;
    let everywhere = matches!(info.verb.as_str(), "list" | "watch");
    let placed = namespaced != info.namespace.is_empty() || (namespaced && everywhere);
    placed && descriptor.version(&info.version).is_some_and(|v| v.served)
}

async fn serve(serving: Serving, info: Arc<RequestInfo>, request: Request) -> Response {
    answer(request, |asked, request| run(serving, info, asked, request)).await
}

async fn run(serving: Serving, info: Arc<RequestInfo>, asked: Asked, request: Request) -> Result<Response, Status> {
    let resource = || GroupResource::new(info.group.clone(), info.resource.clone());
    let Some(endpoint) = serving.built.endpoints.get(&info.version) else {
        return Err(Status::not_found(&resource(), &info.name));
    };
    if let Some(deprecation) = &endpoint.version().deprecation {
        asked.warnings.add(deprecation.warning.as_str());
    }
    let verbs: &[&str] = match info.subresource.as_str() {
        "" => &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
        known if endpoint.version().subresource(known).is_some() => &["get", "update", "patch"],
        _ => return Err(Status::not_found(&resource(), &info.name)),
    };
    let Some(verb) = verbs.iter().find(|v| **v == info.verb) else {
        return Err(Status::method_not_supported(&resource(), &Str::from(info.verb.as_str())));
    };
    let endpoint = match info.subresource.as_str() {
        "scale" => serving.built.scales.get(&info.version).unwrap_or(endpoint),
        _ => endpoint,
    };
    let Asked { user, query, headers, warnings, authorizer, audit } = asked;
    let (endpoint, info) = (endpoint.clone(), info.clone());
    let cx = Arc::new(Context { endpoint, info, user, query, headers, warnings, authorizer, audit });
    handlers::serve(cx, verb, request).await
}
