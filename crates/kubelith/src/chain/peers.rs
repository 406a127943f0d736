//! Other servers of the cluster (`--peer-ca-file`): what only they serve is asked for there.

use super::Shared;
use futures::future::BoxFuture;
use kubelith_aggregator::{Locate, PeerConfig, PeerProxy};
use kubelith_kube::bootstrap::PeerAddresses;
use kubelith_observe::metrics::prometheus::Opts;
use kubelith_observe::metrics::pulled::PulledCounter;
use kubelith_observe::metrics::register;
use kubelith_openapi::discovery::PeerCounts;
use kubelith_outbound::proxy::ClientCertificate;
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const GATE: &str = "UnknownVersionInteroperabilityProxy";

struct Addresses(PeerAddresses);

impl Locate for Addresses {
    fn address<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(self.0.of(server))
    }
}

pub fn proxy(shared: &Shared<'_>) -> Result<Option<Arc<PeerProxy>>, String> {
    if !shared.options.features.enabled(GATE) {
        return Ok(None);
    }
    count(shared);
    let options = &shared.options.aggregator;
    let Some(file) = &options.peer_ca_file else { return Ok(None) };
    let Some(files) = &options.client_certificate else {
        return Err("error building peer proxy handler, proxy-cert-file not specified".to_owned());
    };
    let cache = |group: &str, plural: &str| -> Option<Arc<ResourceCache>> {
        shared.resources.get(&(group.into(), plural.into())).map(|resource| resource.cache.clone())
    };
    let (Some(leases), Some(api_services), Some(addresses)) = (
        cache("coordination.k8s.io", "leases"),
        cache("apiregistration.k8s.io", "apiservices"),
        PeerAddresses::new(&shared.hub, &shared.resources),
    ) else {
        return Ok(None);
    };
    let proxy = PeerProxy::new(PeerConfig {
        server: shared.frame.identity.id.as_str().into(),
        locate: Arc::new(Addresses(addresses)),
        leases,
        api_services,
        crds: cache("apiextensions.k8s.io", "customresourcedefinitions"),
        discovery: shared.discovery.clone(),
        registry: shared.frame.metrics.registry.clone(),
        certificate: ClientCertificate::load(files.cert.clone(), files.key.clone())?,
        authorities: file.clone(),
        route: shared.options.egress.control_plane.clone(),
    })
    .map_err(|why| format!("--peer-ca-file: {why}"))?;
    Ok(Some(proxy))
}

/// Shows which discovery documents were asked for.
fn count(shared: &Shared<'_>) {
    let counts = shared.discovery.peer_counts();
    let show = |name: &str, help: &str, of: fn(&PeerCounts) -> &AtomicU64| {
        let counts = counts.clone();
        let opts = Opts::new(format!("aggregator_discovery_{name}_total"), help);
        register(&shared.frame.metrics.registry, PulledCounter::new(opts, move || of(&counts).load(Ordering::Relaxed)));
    };
    show("nopeer_requests", "Requests for what this server serves alone.", |counts| &counts.alone);
    show("peer_aggregated_cache_hits", "Documents of what all servers serve that were kept.", |counts| &counts.hits);
    show("peer_aggregated_cache_misses", "Documents of what all servers serve that were made.", |counts| {
        &counts.misses
    });
}
