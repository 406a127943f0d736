//! The paths below `/kubelith/v1` that show what only the server knows. All of them are read-only but `links`, which lets who asks
//! sign in to the console; all went through authentication and authorization as paths that are no resources. What is told of single
//! objects is told only to those who may read these objects, too.

mod backup;
mod costs;
mod dependents;
mod extensions;
mod figures;
mod history;
mod links;
mod now;
mod recent;
mod store;

pub use backup::Backup;
pub use costs::Cost;

use crate::session::Sessions;
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use kubelith_auth::user::GROUP_MASTERS;
use kubelith_auth::{Attributes, Authorizer};
use kubelith_http::{Reply, Request, Response, query, respond};
use kubelith_meta::text::Quoted;
use kubelith_meta::{GroupResource, Status};
use kubelith_observe::metrics::Metrics;
use kubelith_server::fairness::Fairness;
use kubelith_server::routes::{Listing, Routes};
use kubelith_store::KeyLayout;
use kubelith_store::cache::{Hub, ResourceCache};
use serde::Serialize;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the answers are made of.
pub struct Sources {
    pub metrics: Metrics,
    /// `None` where plain limits apply.
    pub fairness: Option<Arc<Fairness>>,
    /// The caches of all stores, the main one first.
    pub hubs: Vec<Weak<Hub>>,
    pub layout: KeyLayout,
    /// What the main store is called.
    pub backend: &'static str,
    /// Copies the store, where it is one of our own on a disk.
    pub backup: Option<Backup>,
    /// Prices the expressions of an object.
    pub price: costs::Price,
    /// Authorization lets everybody do everything: then this is for administrators.
    pub allows_always: bool,
}

/// Where the objects of a resource are.
struct Found {
    hub: Arc<Hub>,
    /// Of their keys.
    prefix: String,
    cache: Arc<ResourceCache>,
}

type Outcome = Result<Response, Status>;
type Serve = for<'a> fn(&'a Arc<Sources>, &'a Request) -> BoxFuture<'a, Outcome>;

const PATHS: [(&str, Serve); 8] = [
    ("now", |sources, _| Box::pin(async move { now::serve(sources) })),
    ("extensions", |sources, _| Box::pin(async move { json(&extensions::look(sources)) })),
    ("denials", |sources, _| Box::pin(async move { json(&recent::denials(sources)) })),
    ("store", |sources, _| Box::pin(store::serve(sources))),
    ("history", |sources, request| Box::pin(history::serve(sources, request))),
    ("dependents", |sources, request| Box::pin(dependents::serve(sources, request))),
    ("costs", |sources, request| Box::pin(costs::serve(sources, request))),
    ("backup", |sources, _| Box::pin(backup::serve(sources))),
];

pub fn install(routes: &mut Routes, sources: Arc<Sources>, sessions: Arc<Sessions>) {
    sources.metrics.requests.recent.keep();
    for (name, serve) in PATHS {
        let sources = sources.clone();
        let handler = move |request: Request| {
            let sources = sources.clone();
            Reply::pending(async move {
                let answer = async {
                    sources.check(&request, &Method::GET)?;
                    serve(&sources, &request).await
                };
                answer.await.unwrap_or_else(|status| respond::status_json(&status))
            })
        };
        routes.exact(format!("/kubelith/v1/{name}"), Listing::Unlisted, Arc::new(handler));
    }
    let handler = move |request: Request| {
        let made = sources.check(&request, &Method::POST).and_then(|()| links::make(&sessions, &request));
        Reply::Ready(made.unwrap_or_else(|status| respond::status_json(&status)))
    };
    routes.exact("/kubelith/v1/links", Listing::Unlisted, Arc::new(handler));
}

impl Sources {
    fn check(&self, request: &Request, method: &Method) -> Result<(), Status> {
        if request.method() != method {
            let name = request.info().path.rsplit('/').next().unwrap_or_default().to_owned();
            return Err(Status::method_not_supported(&GroupResource::new("", name), request.method().as_str()));
        }
        let is_master = request.user().is_some_and(|user| user.in_group(GROUP_MASTERS));
        if is_master || !self.allows_always {
            return Ok(());
        }
        let name = request.user().map_or("", |user| user.name.as_str());
        let (verb, path) = (&request.info().verb, &request.info().path);
        let why = format!("User {} cannot {verb} path {}", Quoted(name), Quoted(path));
        Err(Status::forbidden(&GroupResource::default(), "", why))
    }

    /// What the time that the store takes is counted under.
    fn store_name(&self) -> &'static str {
        if self.backend == "etcd" { "etcd" } else { "store" }
    }

    /// The cache of a resource.
    fn cache_of(&self, resource: &GroupResource) -> Option<Found> {
        self.hubs.iter().filter_map(Weak::upgrade).find_map(|hub| {
            let is_it = |(prefix, _): &(String, _)| self.layout.resource(prefix.as_bytes()).as_ref() == Some(resource);
            let (prefix, cache) = hub.caches().into_iter().find(is_it)?;
            Some(Found { hub, prefix, cache })
        })
    }

    /// The caches of all resources.
    fn caches(&self) -> Vec<(GroupResource, Arc<ResourceCache>)> {
        let hubs = self.hubs.iter().filter_map(Weak::upgrade);
        let caches = hubs.flat_map(|hub| hub.caches());
        caches.filter_map(|(prefix, cache)| Some((self.layout.resource(prefix.as_bytes())?, cache))).collect()
    }
}

/// Whether who asks may `verb` these objects.
async fn may(request: &Request, verb: &str, resource: &GroupResource, namespace: &str, name: &str) -> bool {
    let Some(authorizer) = request.context().authorizer.as_ref() else { return false };
    let asked = question(request, verb, resource, namespace, name);
    allowed(authorizer, &asked).await
}

async fn allowed(authorizer: &Arc<dyn Authorizer>, asked: &Attributes) -> bool {
    authorizer.authorize(asked).await.allowed()
}

fn question(request: &Request, verb: &str, resource: &GroupResource, namespace: &str, name: &str) -> Attributes {
    Attributes {
        user: request.user().cloned().unwrap_or_default(),
        verb: verb.into(),
        namespace: namespace.into(),
        group: resource.group.clone(),
        version: "*".into(),
        resource: resource.resource.clone(),
        name: name.into(),
        resource_request: true,
        ..Attributes::default()
    }
}

fn json(value: &impl Serialize) -> Outcome {
    let mut text = serde_json::to_vec(value).map_err(|why| Status::internal_error(why.to_string()))?;
    text.push(b'\n');
    Ok(respond::json(StatusCode::OK, text))
}

fn parameter(request: &Request, name: &str) -> String {
    query::first(request.uri().query(), name).unwrap_or_default().into_owned()
}

/// Milliseconds since 1970, as scripts count.
fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
