//! What pods need to trust this server: a config map in each namespace.

use crate::accounts::{TERMINATING, namespace_of_deleted};
use crate::metrics::ControllerMetrics;
use crate::{Context, caches};
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;
use std::time::Instant;

const NAME: &str = "kube-root-ca.crt";
const ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

struct Publisher {
    client: LoopbackClient,
    maps: Arc<ResourceCache>,
    root_ca: String,
    metrics: Arc<ControllerMetrics>,
}

pub fn start(context: &Context) {
    let (Some(namespaces), Some(maps)) = (context.world.cache("", "namespaces"), context.world.cache("", "configmaps"))
    else {
        return;
    };
    let Some(root_ca) = context.settings.root_ca.clone() else { return };
    let this = Arc::new(Publisher {
        client: context.client("root-ca-cert-publisher"),
        maps: maps.clone(),
        root_ca,
        metrics: context.figures.clone(),
    });
    Controller::new("root_ca_cert_publisher", move |name: Str| {
        let this = this.clone();
        async move { this.measured(&name).await }
    })
    .watches(&namespaces, |change| match &change.new {
        Some(new) if !caches::mentions(new, "\"phase\":\"Terminating\"") => vec![change.key()],
        _ => Vec::new(),
    })
    .watches(&maps, |change| {
        let updated = change.old.is_some() && change.new.is_some();
        match change.object().key.split_once('/') {
            Some((namespace, NAME)) if updated => vec![namespace.into()],
            _ => namespace_of_deleted(change, NAME),
        }
    })
    .metrics(&context.metrics)
    .start(&context.tasks);
}

impl Publisher {
    async fn measured(&self, namespace: &str) -> Result<Next, Status> {
        let begin = Instant::now();
        let outcome = self.reconcile(namespace).await;
        let code = outcome.as_ref().map_or_else(|status| status.code.to_string(), |_| "200".to_owned());
        self.metrics.root_ca_syncs.with_label_values(&[&code]).inc();
        self.metrics.root_ca_durations.with_label_values(&[&code]).observe(begin.elapsed().as_secs_f64());
        outcome
    }

    async fn reconcile(&self, namespace: &str) -> Result<Next, Status> {
        let resource = GroupVersionResource::new("", "v1", "configmaps");
        let all = ResourceRef::new(&resource).namespace(namespace);
        let data = Value::from([("ca.crt", self.root_ca.as_str())]);
        let Some(mut map) = self.maps.get(&format!("{namespace}/{NAME}")).and_then(|m| caches::value(&m)) else {
            let mut map = Value::from([("data", data)]);
            map.meta_mut().set_name(NAME).set_annotation(ANNOTATION, DESCRIPTION);
            return match self.client.create(&all, &map).await {
                Err(status) if !status.is_not_found() && !status.has_cause(TERMINATING) => Err(status),
                _ => Ok(Next::Done),
            };
        };
        let described = map.meta().annotation(ANNOTATION).is_some_and(|text| !text.is_empty());
        if described && map.get("data") == Some(&data) {
            return Ok(Next::Done);
        }
        map.set_at(&["data"], data);
        map.meta_mut().set_annotation(ANNOTATION, DESCRIPTION);
        self.client.update(&all.name(NAME), &map).await.map(|_| Next::Done)
    }
}
