//! What is told about addresses.

use crate::core::service::view::{CLUSTER_IP, EXTERNAL_NAME, NONE, list, text, texts};
use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_meta::names::{cidr_warnings, ip_warnings};

pub fn warnings(service: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if service.meta().annotation("service.kubernetes.io/topology-aware-hints").is_some() {
        out.push(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead"
                .into(),
        );
    }
    let kind = text(service, "type");
    let cluster_ip = text(service, "clusterIP");
    if !cluster_ip.is_empty() && cluster_ip != NONE {
        addresses(service, "clusterIPs", &mut out);
    }
    let headless = kind == CLUSTER_IP && cluster_ip == NONE;
    let external_ips = !list(service, "externalIPs").is_empty();
    if headless {
        if !text(service, "loadBalancerIP").is_empty() {
            out.push("spec.loadBalancerIP is ignored for headless services".into());
        }
        if external_ips {
            out.push("spec.externalIPs is ignored for headless services".into());
        }
        if text(service, "sessionAffinity") != "None" {
            out.push("spec.SessionAffinity is ignored for headless services".into());
        }
    }
    addresses(service, "externalIPs", &mut out);
    if external_ips && !headless && kind != EXTERNAL_NAME {
        out.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".into());
    }
    out.extend(ip_warnings(text(service, "loadBalancerIP"), &Path::of(&["spec", "loadBalancerIP"])));
    for (i, range) in texts(service, "loadBalancerSourceRanges").into_iter().enumerate() {
        let path = format!("spec.loadBalancerSourceRanges[{i}]");
        out.extend(cidr_warnings(range, &Path::new(&path)));
    }
    if kind == EXTERNAL_NAME && external_ips {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
    }
    if kind != EXTERNAL_NAME && !text(service, "externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
    if text(service, "trafficDistribution") == "PreferClose" {
        out.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".into());
    }
    out
}

fn addresses(service: &Value, key: &str, out: &mut Vec<String>) {
    for (i, address) in texts(service, key).into_iter().enumerate() {
        let path = format!("spec.{key}[{i}]");
        out.extend(ip_warnings(address, &Path::new(&path)));
    }
}

pub fn status_warnings(service: &Value) -> Vec<String> {
    let ingress = service.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array).unwrap_or(&[]);
    let named = ingress.iter().enumerate().map(|(i, a)| (format!("status.loadBalancer.ingress[{i}]"), a));
    named.flat_map(|(path, a)| ip_warnings(a.str_at(&["ip"]), &Path::new(&path))).collect()
}
