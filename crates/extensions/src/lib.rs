//! CustomResourceDefinitions: resources that are data at run time.
//!
//! A request for a custom resource finds its definition in the watch cache, and what was made of it in the table of
//! `serving`: a descriptor, schemas, endpoints, the same types that built-in resources have. `controllers` keep the
//! status of definitions and publish them, `validation` has the rules for definitions themselves.

mod controllers;
mod definition;
mod handler;
pub mod inspect;
mod metrics;
mod openapi;
mod rules;
mod serving;
mod strategy;
mod validation;

pub use definition::Definition;
pub use metrics::ExtensionsMetrics;
pub use serving::WrittenAs;
pub use strategy::DefinitionStrategy;

use controllers::{Index, Publisher, StatusController, finalizer};
use handler::Link;
use kubelith_auth::hook::Hooks;
use kubelith_handlers::Limits;
use kubelith_handlers::fields::Outlines;
use kubelith_http::BoxHandler;
use kubelith_meta::GroupResource;
use kubelith_meta::time::Clock;
use kubelith_openapi::OpenApi;
use kubelith_openapi::discovery::Discovery;
use kubelith_registry::Resource;
use kubelith_registry::admission::Admission;
use kubelith_server::controller::Running;
use kubelith_server::fairness::ObjectCounts;
use kubelith_server::lifecycle::Tasks;
use kubelith_server::loopback::LoopbackClient;
use kubelith_store::cache::{Hub, ResourceCache};
use serving::Table;
use std::sync::Arc;
use std::time::Duration;

/// Keeps a definition until its instances are gone.
const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// OpenAPI documents that nobody asked for in this time are dropped.
const OPENAPI_IDLE: Duration = Duration::from_secs(300);

/// What serving custom resources takes.
pub struct Config {
    pub hub: Arc<Hub>,
    /// The definitions themselves.
    pub definitions: Arc<Resource>,
    pub admission: Arc<dyn Admission>,
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
    /// `--enable-garbage-collector`.
    pub garbage_collection: bool,
    /// The form in which custom resources are stored.
    pub written_as: WrittenAs,
    pub metrics: Arc<ExtensionsMetrics>,
    /// Where it is noted how many objects there are, for estimates of what a list costs.
    pub counts: Option<Arc<ObjectCounts>>,
    /// The way to webhooks that convert objects.
    pub hooks: Arc<dyn Hooks>,
    /// How long a webhook may take to convert objects.
    pub webhook_timeout: Duration,
    /// Until the objects of a definition that is being deleted are looked for: other servers on the same store may not have seen it
    /// yet, and let some be created.
    pub deletion_grace: Duration,
    /// Of the sets of fields that the managers of custom resources have.
    pub outlines: Arc<Outlines>,
}

/// What the reference waits for a conversion webhook.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// The API extensions server.
pub struct Extensions {
    config: Arc<Config>,
    table: Arc<Table>,
    index: Arc<Index>,
    publisher: Arc<Publisher>,
}

impl Extensions {
    pub fn new(config: Config, discovery: Arc<Discovery>, openapi: Arc<OpenApi>) -> Arc<Extensions> {
        let publisher = Publisher { discovery, openapi, metrics: config.metrics.clone() };
        let config = Arc::new(config);
        let index = Arc::<Index>::default();
        Arc::new(Extensions {
            table: Arc::new(Table::new(config.clone(), index.clone())),
            config,
            index,
            publisher: Arc::new(publisher),
        })
    }

    /// Serves custom resources and passes on everything else.
    pub fn before(self: &Arc<Self>, next: BoxHandler) -> BoxHandler {
        Arc::new(Link { config: self.config.clone(), table: self.table.clone(), next })
    }

    /// The watch cache of a custom resource, which is filled if nobody asked for the resource yet.
    pub async fn cache(&self, resource: &GroupResource) -> Option<Arc<ResourceCache>> {
        let serving = self.table.get(resource).await.ok().flatten()?;
        serving.built.storage().map(|endpoint| endpoint.resource.cache.clone())
    }

    /// Starts the controllers. What is answered settles when every definition that is stored was looked at.
    pub fn start(&self, client: &LoopbackClient, tasks: &Tasks) -> Running {
        let openapi = self.publisher.openapi.clone();
        tasks.spawn_until_stopped("openapi-idle", async move {
            loop {
                tokio::time::sleep(OPENAPI_IDLE).await;
                openapi.drop_unused();
            }
        });
        let status = StatusController {
            finalizer: finalizer(self.config.clone(), client.clone(), self.table.clone()).start(tasks),
            config: self.config.clone(),
            client: client.clone(),
            table: self.table.clone(),
            index: self.index.clone(),
            publisher: self.publisher.clone(),
        };
        status.controller().start(tasks)
    }
}
