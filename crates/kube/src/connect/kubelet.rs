//! Kubelets: where they are and how to speak to them.

use super::ways::Ways;
use kubelith_codec::json;
use kubelith_meta::{GroupResource, Status, Value};
use kubelith_outbound::egress::Route;
use kubelith_outbound::proxy::Transport;
use kubelith_registry::Resource;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

/// How this server speaks to kubelets.
#[derive(Debug, Clone, Default)]
pub struct KubeletOptions {
    /// Authorities of their certificates; without them any certificate is taken.
    pub certificate_authority: Option<PathBuf>,
    /// Our certificate and key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Kinds of node addresses, best first.
    pub address_types: Vec<String>,
    /// The port of those that tell none.
    pub port: u16,
    /// The way to them, and to pods and services.
    pub route: Route,
    /// Bytes per second of connections that clients take over, to any of them.
    pub bandwidth: Option<NonZeroU32>,
}

pub struct Kubelets {
    nodes: Arc<Resource>,
    address_types: Vec<String>,
    port: u16,
    ways: Ways,
}

/// One kubelet.
#[derive(Debug, PartialEq, Eq)]
pub struct Kubelet {
    pub host: String,
    pub port: u16,
    /// It says of itself that it needs no translation.
    pub speaks_websocket: bool,
}

/// The feature by which a kubelet declares that.
const WEBSOCKETS: &str = "ExtendWebSocketsToKubelet";

impl Kubelets {
    pub fn new(nodes: Arc<Resource>, options: &KubeletOptions) -> Result<Kubelets, String> {
        let address_types = options.address_types.clone();
        Ok(Kubelets { nodes, address_types, port: options.port, ways: Ways::new(options)? })
    }

    pub fn transport(&self) -> Arc<Transport> {
        self.ways.verifying()
    }

    pub fn insecure(&self) -> Arc<Transport> {
        self.ways.insecure()
    }

    /// The kubelet of a node. A node that is not there is reported as the resource that was asked for, as in the
    /// reference.
    pub async fn of_node(&self, node: &str, asked_for: &GroupResource) -> Result<Kubelet, Status> {
        self.nodes.hub.fresh().await.map_err(Status::internal_error)?;
        let object = self.nodes.cache.get(node).and_then(|o| json::parse(&o.json()).ok());
        let object = object.ok_or_else(|| Status::not_found(asked_for, node))?;
        kubelet(&object, &self.address_types, self.port).map_err(Status::unknown)
    }
}

fn kubelet(node: &Value, types: &[String], default_port: u16) -> Result<Kubelet, String> {
    let addresses = node.at(&["status", "addresses"]).and_then(Value::as_array).unwrap_or(&[]);
    let of_type = |kind: &String| addresses.iter().find(|a| a.str_at(&["type"]) == kind);
    let Some(address) = types.iter().find_map(of_type) else {
        let known: Vec<&str> = addresses.iter().map(|a| a.str_at(&["type"])).collect();
        return Err(format!("no preferred addresses found; known addresses: [{}]", known.join(" ")));
    };
    let port = node.at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).and_then(Value::as_i64);
    let port = port.and_then(|p| u16::try_from(p).ok()).filter(|p| *p > 0).unwrap_or(default_port);
    let declared = node.at(&["status", "declaredFeatures"]).and_then(Value::as_array).unwrap_or(&[]);
    let speaks_websocket = declared.iter().any(|feature| feature.as_str() == Some(WEBSOCKETS));
    Ok(Kubelet { host: address.str_at(&["address"]).to_owned(), port, speaks_websocket })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_address_counts() {
        let node = json::parse(
            br#"{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"},{"type":"Hostname","address":"n1"}],
            "daemonEndpoints":{"kubeletEndpoint":{"Port":1234}},"declaredFeatures":["ExtendWebSocketsToKubelet"]}}"#,
        )
        .unwrap();
        let types = ["Hostname", "InternalIP"].map(str::to_owned);
        let found = |host: &str| Ok(Kubelet { host: host.into(), port: 1234, speaks_websocket: true });
        assert_eq!(kubelet(&node, &types, 1), found("n1"));
        assert_eq!(kubelet(&node, &types[1..], 1), found("10.0.0.1"));
        let none = kubelet(&node, &["ExternalIP".to_owned()], 1).unwrap_err();
        assert_eq!(none, "no preferred addresses found; known addresses: [InternalIP Hostname]");
        assert_eq!(
            kubelet(&Value::object(), &types, 1).unwrap_err(),
            "no preferred addresses found; known addresses: []"
        );
    }
}
