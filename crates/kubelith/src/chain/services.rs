//! Where services can be reached from here: their cluster address, or one of their endpoints with
//! `--enable-aggregator-routing`.

use kubelith_codec::json;
use kubelith_meta::Value;
use kubelith_outbound::proxy::hook::Resolve;
use kubelith_registry::Objects;
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::net::IpAddr;
use std::sync::Arc;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// How requests reach the pods of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    ClusterIp,
    Endpoints,
}

pub fn resolver(objects: Arc<Objects>, routing: Routing) -> Resolve {
    Arc::new(move |namespace, name, port| {
        let service = objects.cached("", "services", namespace, name).as_deref().and_then(value);
        let service = service.ok_or_else(|| format!("service \"{name}\" not found"))?;
        let spec = service.get("spec").cloned().unwrap_or_default();
        if spec.str_at(&["type"]) == "ExternalName" {
            return Ok(format!("{}:{port}", spec.str_at(&["externalName"])));
        }
        let named = spec.get("ports").and_then(Value::as_array).unwrap_or(&[]);
        let named = named.iter().find(|p| p.get("port").and_then(Value::as_i64) == Some(port.into()));
        let named = named.ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
        let address = spec.str_at(&["clusterIP"]);
        if routing == Routing::Endpoints
            && let Some(slices) = objects.resource("discovery.k8s.io", "endpointslices")
        {
            return endpoint(&slices.cache, namespace, name, named.str_at(&["name"]))
                .ok_or_else(|| format!("no endpoints available for service \"{name}\""));
        }
        match address.parse::<IpAddr>() {
            Ok(address) => Ok(std::net::SocketAddr::new(address, port).to_string()),
            Err(_) => Err(format!("cannot route to service with ClusterIP \"{address}\"")),
        }
    })
}

fn value(object: &CachedObject) -> Option<Value> {
    json::parse(&object.json()).ok()
}

/// The first ready endpoint that has the port.
fn endpoint(slices: &ResourceCache, namespace: &str, service: &str, port: &str) -> Option<String> {
    let snapshot = slices.snapshot();
    let prefix = format!("{namespace}/");
    let ours =
        snapshot.range(&prefix, None).filter(|s| s.labels.iter().any(|(k, v)| k == SERVICE_NAME && v == service));
    ours.filter_map(|slice| value(slice)).find_map(|slice| {
        let ports = slice.get("ports").and_then(Value::as_array).unwrap_or(&[]);
        let number = ports.iter().find(|p| p.str_at(&["name"]) == port)?.get("port")?.as_i64()?;
        let endpoints = slice.get("endpoints").and_then(Value::as_array).unwrap_or(&[]);
        let ready = |e: &&Value| e.at(&["conditions", "ready"]).and_then(Value::as_bool).unwrap_or(true);
        let address: IpAddr =
            endpoints.iter().find(ready)?.get("addresses")?.as_array()?.first()?.as_str()?.parse().ok()?;
        Some(std::net::SocketAddr::new(address, number.try_into().ok()?).to_string())
    })
}
