//! The server chain: what serves the APIs, from the top to the 404 at its end.

use crate::options::Options;
use kubelith_catalog::RuntimeConfig;
use kubelith_kube::actions::Access;
use kubelith_kube::admission::NamespaceLifecycle;
use kubelith_kube::{Install, Installed, install};
use kubelith_meta::time::SystemClock;
use kubelith_server::api::Api;
use kubelith_server::discovery::{Discovery, Source};
use kubelith_server::handlers::Limits;
use kubelith_server::http::BoxHandler;
use kubelith_server::openapi::{Library, OpenApi, Subject};
use kubelith_server::routes;
use kubelith_store::cache::Hub;
use std::sync::Arc;

/// The APIs, ready to be put behind the filters.
pub struct Apis {
    pub handler: BoxHandler,
    pub resources: kubelith_kube::Resources,
    discovery: Arc<Discovery>,
}

impl Apis {
    /// The paths that the index at `/` shows: groups and versions as they are when it is asked for, and OpenAPI.
    pub fn listed(&self) -> impl Fn() -> Vec<String> + Send + Sync + 'static {
        let discovery = self.discovery.clone();
        move || {
            let mut paths: Vec<String> = OpenApi::LISTED.iter().map(|p| (*p).to_owned()).collect();
            paths.extend(["/api", "/apis", "/apis/"].map(str::to_owned));
            for group in discovery.groups() {
                let root = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
                paths.extend(group.versions.iter().map(|v| format!("{root}/{}", v.name)));
                paths.push(root);
            }
            paths
        }
    }
}

pub async fn build(options: &Options, hub: Arc<Hub>, access: Access) -> Result<Apis, String> {
    let catalog = kubelith_catalog::builtin();
    let runtime_config = RuntimeConfig::parse(catalog, &options.storage.runtime_config)?;
    let features = options.features.clone();
    let installed = install(Install {
        catalog,
        hub,
        admission: Arc::new(NamespaceLifecycle),
        clock: Arc::new(SystemClock),
        limits: Limits {
            min_request_timeout: options.generic.min_request_timeout,
            delete_collection_workers: options.storage.delete_collection_workers,
            ..Limits::default()
        },
        garbage_collection: options.storage.garbage_collector,
        access,
        runtime_config,
        gates: Arc::new(move |gate: &str| features.enabled(gate)),
    });
    let Installed { routes, discovery: entries, resources } = installed.await.map_err(|e| e.to_string())?;
    let documents = Subject::of_routes(&routes);
    let api = Api::new(routes, routes::not_found());
    let address = std::net::SocketAddr::new(options.network.advertise_address, options.serving.bind.port);
    let discovery = Discovery::new(address.to_string(), api);
    discovery.set(Source::BuiltIn, entries);
    let openapi = OpenApi::new(library(), discovery.clone());
    openapi.put(documents);
    Ok(Apis { handler: openapi, resources, discovery })
}

/// What OpenAPI documents are made from.
fn library() -> Library {
    let version = crate::version::info();
    Library { catalog: kubelith_catalog::builtin(), release: format!("{}.{}", version.major, version.minor).into() }
}
