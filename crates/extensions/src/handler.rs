//! The link of the server chain that serves custom resources. What it does not know is left to the next one.
//!
//! No request is served by a definition that was replaced before it came, by whatever server. A write therefore waits
//! until the caches have all that was acknowledged. A read begins at once, since it waits for the same by itself: if the
//! definition turns out to be another one then, it is done again.

use crate::Config;
use crate::serving::{Serving, Table};
use kubelith_auth::Answer;
use kubelith_handlers::api::{Asked, answer};
use kubelith_handlers::{Answering, Context, Endpoint, Query};
use kubelith_http::{BoxHandler, Handler, Reply, Request, RequestBody, RequestInfo, Response};
use kubelith_meta::{GroupResource, Status, Str};
use kubelith_schema::Scope;
use std::sync::Arc;

pub struct Link {
    pub config: Arc<Config>,
    pub table: Arc<Table>,
    pub next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let info = request.context().info.clone();
        let is_ours = |i: &RequestInfo| i.is_resource_request && !i.group.is_empty() && !i.path.starts_with("//");
        let Some(info) = info.filter(|i| is_ours(i)) else {
            return self.next.handle(request);
        };
        let (config, table, next) = (self.config.clone(), self.table.clone(), self.next.clone());
        if is_read(&info)
            && let Some(serving) = table.unchanged(&resource_of(&info)).filter(|serving| serves(serving, &info))
        {
            return answer(request, |a, r| run(table, next, serving, info, a, r));
        }
        Reply::pending(async move {
            let found = Finding { config: &config, table: &table, info: &info };
            match found.serving().await {
                Ok(Some(serving)) => answer(request, |a, r| run(table, next, serving, info, a, r)).await,
                Ok(None) => next.handle(request).await,
                Err(status) => answer(request, |_, _| Err(status)).await,
            }
        })
    }
}

/// Looks for what serves a request.
struct Finding<'a> {
    config: &'a Config,
    table: &'a Table,
    info: &'a RequestInfo,
}

impl Finding<'_> {
    async fn serving(&self) -> Result<Option<Serving>, Status> {
        if is_read(self.info)
            && let Some(known) = self.known().await?
        {
            return Ok(Some(known));
        }
        self.config.hub.fresh().await.map_err(Status::internal_error)?;
        self.known().await
    }

    /// By what the watch cache has now.
    async fn known(&self) -> Result<Option<Serving>, Status> {
        let serving = self.table.get(&resource_of(self.info)).await?;
        Ok(serving.filter(|serving| serves(serving, self.info)))
    }
}

fn resource_of(info: &RequestInfo) -> GroupResource {
    GroupResource::new(info.group.clone(), info.resource.clone())
}

fn is_read(info: &RequestInfo) -> bool {
    matches!(info.verb.as_str(), "get" | "list" | "watch")
}

/// Whether the path leads to the resource: its version is served, and it has a namespace where there must be one.
fn serves(serving: &Serving, info: &RequestInfo) -> bool {
    let descriptor = &serving.built.descriptor;
    let namespaced = descriptor.scope == Scope::Namespaced;
    let everywhere = matches!(info.verb.as_str(), "list" | "watch");
    let placed = namespaced != info.namespace.is_empty() || (namespaced && everywhere);
    placed && descriptor.version(&info.version).is_some_and(|v| v.served)
}

fn run(
    table: Arc<Table>,
    next: BoxHandler,
    serving: Serving,
    info: Arc<RequestInfo>,
    asked: Asked,
    request: Request,
) -> Result<Answering, Status> {
    let deprecation = serving.built.endpoints.get(&info.version).and_then(|e| e.version().deprecation.as_ref());
    if let Some(deprecation) = deprecation {
        asked.warnings.add(deprecation.warning.as_str());
    }
    let (endpoint, verb) = endpoint(&serving, &info)?;
    let Asked { user, query, headers, warnings, authorizer, audit } = asked;
    let deadline = request.deadline().map(Into::into);
    let late = request.context().late.clone();
    let cx = Arc::new(Context { endpoint, info, user, query, headers, warnings, authorizer, audit, deadline, late });
    Ok(match verb {
        "get" => Answer::begin(read(table, next, serving, cx, Box::new(request))),
        "list" => Answer::pending(read(table, next, serving, cx, Box::new(request))),
        verb => kubelith_handlers::serve(cx, verb, request),
    })
}

/// GET and LIST, again if the definition was replaced before they came.
async fn read(
    table: Arc<Table>,
    next: BoxHandler,
    mut serving: Serving,
    mut cx: Arc<Context>,
    request: Box<Request>,
) -> Result<Response, Status> {
    loop {
        let outcome = match cx.info.verb.as_str() {
            "get" => kubelith_handlers::read_one(cx.clone()).await,
            verb => {
                kubelith_handlers::serve(cx.clone(), verb, http::Request::new(RequestBody::Full(None)).into()).await
            }
        };
        if table.is_current(&serving) {
            return outcome;
        }
        match table.get(&resource_of(&cx.info)).await? {
            Some(now) if Arc::ptr_eq(&now.built, &serving.built) => return outcome,
            Some(now) if serves(&now, &cx.info) => {
                let (endpoint, _) = endpoint(&now, &cx.info)?;
                cx = Arc::new(Context {
                    endpoint,
                    info: cx.info.clone(),
                    user: cx.user.clone(),
                    query: Query::parse(request.uri().query()),
                    headers: cx.headers.clone(),
                    warnings: cx.warnings.clone(),
                    authorizer: cx.authorizer.clone(),
                    audit: cx.audit.clone(),
                    deadline: cx.deadline,
                    late: cx.late.clone(),
                });
                serving = now;
            }
            _ => return Ok(next.handle(*request).await),
        }
    }
}

/// What answers a request, and the verb by which it is asked.
fn endpoint(serving: &Serving, info: &RequestInfo) -> Result<(Arc<Endpoint>, &'static str), Status> {
    let Some(endpoint) = serving.built.endpoints.get(&info.version) else {
        return Err(Status::not_found(&resource_of(info), &info.name));
    };
    let verbs: &[&str] = match info.subresource.as_str() {
        "" => &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
        known if endpoint.version().subresource(known).is_some() => &["get", "update", "patch"],
        _ => return Err(Status::not_found(&resource_of(info), &info.name)),
    };
    let Some(verb) = verbs.iter().find(|v| **v == info.verb) else {
        return Err(Status::method_not_supported(&resource_of(info), &Str::from(info.verb.as_str())));
    };
    let endpoint = match info.subresource.as_str() {
        "scale" => serving.built.scales.get(&info.version).unwrap_or(endpoint),
        _ => endpoint,
    };
    Ok((endpoint.clone(), verb))
}
