//! The aggregator: sends what other servers serve to them, and keeps an APIService for each group version. It is the
//! first to be asked.
//!
//! In health it shows, in this order: `aggregator-reload-proxy-client-cert`, `start-kube-aggregator-informers`,
//! `apiservice-status-local-available-controller`, `apiservice-status-remote-available-controller`,
//! `apiservice-registration-controller`, `apiservice-discovery-controller`, `kube-apiserver-autoregistration`, then the
//! check `autoregister-completion`, then `apiservice-openapi-controller`, `apiservice-openapiv3-controller`.

use super::Shared;
use kubelith_aggregator::{Config, Local, Routing};
use kubelith_openapi::discovery::Source;
use kubelith_outbound::proxy::{ClientCertificate, Identity, Redirects};
use kubelith_registry::Resource;
use kubelith_server::Delegate;
use kubelith_server::lifecycle::Begun;
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;

pub fn server(shared: &Shared<'_>, next: Delegate) -> Result<Delegate, String> {
    let (Some(api_services), Some(services)) =
        (cache(shared, "apiregistration.k8s.io", "apiservices"), cache(shared, "", "services"))
    else {
        return Err("API group/version apiregistration.k8s.io/v1 must be enabled".to_owned());
    };
    let options = &shared.options.aggregator;
    let config = Config {
        api_services,
        readings: shared.frame.blueprint.api_services.clone(),
        services,
        endpoint_slices: cache(shared, "discovery.k8s.io", "endpointslices"),
        crds: cache(shared, "apiextensions.k8s.io", "customresourcedefinitions"),
        client: shared.frame.client.clone(),
        clock: shared.clock.clone(),
        metrics: shared.frame.metrics.clone(),
        discovery: shared.discovery.clone(),
        openapi: shared.openapi.clone(),
        built_in: shared.frame.blueprint.built_in.get_or_init(|| built_in(shared)).clone(),
        routing: if options.route_to_endpoints { Routing::Endpoints } else { Routing::ClusterIp },
        redirects: if options.reject_redirects { Redirects::Refuse } else { Redirects::Pass },
        identity: match shared.options.features.enabled("RemoteRequestHeaderUID") {
            true => Identity::WithUid,
            false => Identity::WithoutUid,
        },
        route: shared.options.egress.cluster.clone(),
        installation: shared.installation.clone(),
        certificate: match &options.client_certificate {
            Some(files) if shared.frame.begun == Begun::AsCopy => {
                ClientCertificate::later(files.cert.clone(), files.key.clone())
            }
            Some(files) => ClientCertificate::load(files.cert.clone(), files.key.clone())?,
            None => ClientCertificate::none(),
        },
    };
    Ok(kubelith_aggregator::serve(config, next))
}

fn cache(shared: &Shared<'_>, group: &str, plural: &str) -> Option<Arc<ResourceCache>> {
    shared.resources.get(&(group.into(), plural.into())).map(|r: &Arc<Resource>| r.cache.clone())
}

/// What the kube server serves, with its place in discovery.
fn built_in(shared: &Shared<'_>) -> Arc<[Local]> {
    let apis = kubelith_catalog::builtin().apis();
    let served = apis.iter().filter(|api| shared.discovery.has(Source::BuiltIn, &api.gv));
    served
        .map(|api| Local {
            gv: api.gv.clone(),
            group_priority: api.group_priority,
            version_priority: api.version_priority,
        })
        .collect()
}
