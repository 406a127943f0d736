//! Where services can be reached from here: their cluster address, or one of their endpoints with
//! `--enable-aggregator-routing`.

use kubelith_codec::json;
use kubelith_meta::Value;
use kubelith_meta::text::quote;
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
        match (spec.str_at(&["type"]), routing) {
            ("ClusterIP" | "NodePort" | "LoadBalancer", _) => {}
            ("ExternalName", Routing::ClusterIp) => return Ok(format!("{}:{port}", spec.str_at(&["externalName"]))),
            (other, _) => return Err(format!("unsupported service type {}", quote(other))),
        }
        let address = spec.str_at(&["clusterIP"]);
        let is_headless = spec.str_at(&["type"]) == "ClusterIP" && address == "None";
        if routing == Routing::ClusterIp && is_headless {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        let named = spec.get("ports").and_then(Value::as_array).unwrap_or(&[]);
        let named = named.iter().find(|p| p.get("port").and_then(Value::as_i64) == Some(port.into()));
        let named = named.ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
        if routing == Routing::Endpoints
            && let Some(slices) = objects.resource("discovery.k8s.io", "endpointslices")
        {
            let families = spec.get("ipFamilies").and_then(Value::as_array).unwrap_or(&[]);
            let family = families.first().and_then(Value::as_str).unwrap_or_default();
            return endpoint(&slices.cache, (namespace, name), named.str_at(&["name"]), family)
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

/// Any of the ready endpoints that have the port, those of the service's first family before the others.
fn endpoint(slices: &ResourceCache, (namespace, service): (&str, &str), port: &str, family: &str) -> Option<String> {
    let snapshot = slices.snapshot();
    let prefix = format!("{namespace}/");
    let ours =
        snapshot.range(&prefix, None).filter(|s| s.labels.iter().any(|(k, v)| k == SERVICE_NAME && v == service));
    let mut found: Vec<(bool, String)> = Vec::new();
    for slice in ours.filter_map(|slice| value(slice)) {
        let ports = slice.get("ports").and_then(Value::as_array).unwrap_or(&[]);
        let port = ports.iter().find(|p| p.str_at(&["name"]) == port).and_then(|p| p.get("port")?.as_i64());
        let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else { continue };
        let endpoints = slice.get("endpoints").and_then(Value::as_array).unwrap_or(&[]);
        let ready = |e: &&Value| e.at(&["conditions", "ready"]).and_then(Value::as_bool).unwrap_or(true);
        let address = |e: &Value| e.get("addresses")?.as_array()?.first()?.as_str()?.parse::<IpAddr>().ok();
        let is_other = slice.str_at(&["addressType"]) != family;
        let addresses = endpoints.iter().filter(ready).filter_map(address);
        found.extend(addresses.map(|address| (is_other, std::net::SocketAddr::new(address, port).to_string())));
    }
    let preferred = found.iter().filter(|(is_other, _)| !is_other).count();
    let among = if preferred > 0 { preferred } else { found.len() };
    found.sort_by_key(|(is_other, _)| *is_other);
    let chosen = kubelith_meta::random::random_bits() as usize % among.max(1);
    found.into_iter().nth(chosen).map(|(_, address)| address)
}
