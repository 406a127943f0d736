//! EgressSelectorConfiguration: by which proxy the cluster, the control plane and etcd are reached.

use super::connect::{DialObserver, Route, Server};
use crate::proxy::{ClientCertificate, TlsClient};
use kubelith_codec::config::{Format, Item, Shape, Unknown};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path as FieldPath};
use kubelith_meta::text::{Quoted, aggregate};
use kubelith_system::require_sockets;
use kubelith_tls::Trust;
use kubelith_tls::files::unopened;
use std::path::Path;
use std::sync::Arc;

const FORMAT: Format = {
    const TLS: Shape = Shape::Object(&[
        ("caBundle", Shape::Text),
        ("clientKey", Shape::Text),
        ("clientCert", Shape::Text),
        ("tlsServerName", Shape::Text),
    ]);
    const TRANSPORT: Shape = Shape::Object(&[
        ("tcp", Shape::Object(&[("url", Shape::Text), ("tlsConfig", TLS)])),
        ("uds", Shape::Object(&[("udsName", Shape::Text)])),
    ]);
    const CONNECTION: Shape = Shape::Object(&[("proxyProtocol", Shape::Text), ("transport", TRANSPORT)]);
    Format {
        group: "apiserver.k8s.io",
        versions: &["v1beta1", "v1alpha1"],
        kind: "EgressSelectorConfiguration",
        fields: &[(
            "egressSelections",
            Shape::List(&Item {
                shape: Shape::Object(&[("name", Shape::Text), ("connection", CONNECTION)]),
                list: "[]v1beta1.EgressSelection",
            }),
        )],
        unknown: Unknown::Refused,
        scheme: None,
    }
};

/// Where connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Nodes, pods and services.
    Cluster,
    /// Webhooks and issuers of tokens.
    ControlPlane,
    Etcd,
}

impl Destination {
    const ALL: [(&'static str, Destination); 3] =
        [("cluster", Destination::Cluster), ("controlplane", Destination::ControlPlane), ("etcd", Destination::Etcd)];
}

/// The route to each destination; straight without a file.
#[derive(Debug, Clone, Default)]
pub struct Egress {
    pub cluster: Route,
    pub control_plane: Route,
    pub etcd: Route,
}

impl Egress {
    /// Tells an observer of all connections through proxies.
    pub fn observe(&self, observer: &Arc<dyn DialObserver>) {
        for route in [&self.cluster, &self.control_plane, &self.etcd] {
            route.observe(observer);
        }
    }

    pub fn read(path: &Path) -> Result<Egress, String> {
        let text = std::fs::read(path).map_err(|e| {
            let (shown, why) = (path.display().to_string(), unopened(path, &e));
            let file = Quoted(&shown);
            format!(
                "failed to read egress selector config: unable to read egress selector configuration from {file} [{why}]"
            )
        })?;
        Egress::parse(&text)
    }

    fn parse(text: &[u8]) -> Result<Egress, String> {
        let document = FORMAT.read(text).map_err(|why| format!("failed to read egress selector config: {why}"))?;
        let selections = document.get("egressSelections").and_then(Value::as_array).unwrap_or(&[]);
        let errors = validate(selections);
        if !errors.is_empty() {
            let all = aggregate(errors.0.iter().map(ToString::to_string));
            return Err(format!("failed to validate egress selector configuration: {all}"));
        }
        let mut egress = Egress::default();
        for selection in selections {
            let name = selection.str_at(&["name"]).to_lowercase();
            let connection = selection.get("connection").cloned().unwrap_or_default();
            let route = route(&connection).map_err(|why| {
                let name = Quoted(&name);
                format!("failed to setup egress selector: failed to create dialer for egressSelection {name}: {why}")
            })?;
            match Destination::ALL.iter().find(|(known, _)| *known == name) {
                Some((_, Destination::Cluster)) => egress.cluster = route,
                Some((_, Destination::ControlPlane)) => egress.control_plane = route,
                Some((_, Destination::Etcd)) => egress.etcd = route,
                None => {}
            }
        }
        Ok(egress)
    }
}

fn validate(selections: &[Value]) -> ErrorList {
    let mut errors = ErrorList::default();
    let path = FieldPath::of(&["service", "connection"]);
    for selection in selections {
        let connection = selection.get("connection").cloned().unwrap_or_default();
        let transport = connection.get("transport").filter(|t| !t.is_null());
        let part = |name: &str| transport.and_then(|t| t.get(name)).filter(|t| !t.is_null());
        match connection.str_at(&["proxyProtocol"]) {
            "Direct" if transport.is_some() => {
                let why = "config must be absent for direct connect";
                errors.push(Error::invalid(&path.child("transport"), "direct", why));
            }
            "Direct" => {}
            "HTTPConnect" if transport.is_none() => {
                errors.push(Error::required(&path.child("transport"), "transport must be set for HTTPConnect"));
            }
            "HTTPConnect" => match (part("tcp"), part("uds")) {
                (Some(tcp), Some(_)) => {
                    let why = "TCP and UDS cannot both be set";
                    errors.push(Error::invalid(&path.child("tcp"), tcp.str_at(&["url"]), why));
                }
                (None, None) => errors.push(Error::required(&path.child("tcp"), "One of TCP or UDS must be set")),
                (Some(tcp), None) => validate_tcp(tcp, &path, &mut errors),
                (None, Some(uds)) => validate_uds(uds, &path, &mut errors),
            },
            "GRPC" if transport.is_none() => {
                errors.push(Error::required(&path.child("transport"), "transport must be set for GRPC"));
            }
            "GRPC" => match part("uds") {
                Some(uds) => validate_uds(uds, &path, &mut errors),
                None => errors.push(Error::required(&path.child("uds"), "UDS must be set with GRPC")),
            },
            other => {
                let known = ["Direct", "HTTPConnect", "GRPC"];
                errors.push(Error::not_supported(&path.child("protocol"), other, known));
            }
        }
    }
    let names: Vec<String> = selections.iter().map(|s| s.str_at(&["name"]).to_lowercase()).collect();
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            errors.push(Error::duplicate(&path.index(i), name.as_str()));
        } else if !Destination::ALL.iter().any(|(known, _)| known == name) {
            errors.push(Error::not_supported(&path, name.as_str(), Destination::ALL.map(|(known, _)| known)));
        }
    }
    errors
}

fn validate_uds(uds: &Value, path: &FieldPath<'_>, errors: &mut ErrorList) {
    if uds.str_at(&["udsName"]).is_empty() {
        errors.push(Error::invalid(&path.child("udsName"), "nil", "must be present for UDS connections"));
    }
}

fn validate_tcp(tcp: &Value, path: &FieldPath<'_>, errors: &mut ErrorList) {
    let (url, tls) = (tcp.str_at(&["url"]), tcp.get("tlsConfig").filter(|t| !t.is_null()));
    let path_of_tls = path.child("tlsConfig");
    if url.starts_with("http://") {
        if tls.is_some() {
            errors.push(Error::invalid(&path_of_tls, "nil", "config must not be present when using HTTP"));
        }
        return;
    }
    if !url.starts_with("https://") {
        let why = "supported connection protocols are http:// and https://";
        errors.push(Error::invalid(&path.child("url"), url, why));
        return;
    }
    let Some(tls) = tls else {
        errors.push(Error::required(&path_of_tls, "TLSConfig must be present when using HTTPS"));
        return;
    };
    let bundle = tls.str_at(&["caBundle"]);
    if !bundle.is_empty() && !Path::new(bundle).exists() {
        errors.push(Error::invalid(&path_of_tls.child("caBundle"), bundle, "TLS config ca bundle does not exist"));
    }
    for (field, missing, gone) in [
        ("clientCert", "Using TLS requires clientCert", "TLS client cert does not exist"),
        ("clientKey", "Using TLS requires requires clientKey", "TLS client key does not exist"),
    ] {
        match tls.str_at(&[field]) {
            "" => errors.push(Error::invalid(&path_of_tls.child(field), "nil", missing)),
            file if !Path::new(file).exists() => {
                errors.push(Error::invalid(&path_of_tls.child(field), file, gone));
            }
            _ => {}
        }
    }
}

/// Of a connection that is valid.
fn route(connection: &Value) -> Result<Route, String> {
    let text = |path: &[&str]| connection.str_at(path).to_owned();
    let socket = text(&["transport", "uds", "udsName"]);
    if !socket.is_empty() {
        require_sockets(&format!("udsName {}", Quoted(&socket)))?;
    }
    match connection.str_at(&["proxyProtocol"]) {
        "HTTPConnect" => {}
        "GRPC" => return Ok(Route::through(Server::Konnectivity(socket.into()))),
        _ => return Ok(Route::Direct),
    }
    if !socket.is_empty() {
        return Ok(Route::through(Server::Unix(socket.into())));
    }
    let url = text(&["transport", "tcp", "url"]);
    let invalid = |why: &str| format!("invalid proxy server url {}: {why}", Quoted(&url));
    let uri: http::Uri = url.parse().map_err(|e: http::uri::InvalidUri| invalid(&e.to_string()))?;
    let host = uri.host().ok_or_else(|| invalid("no host"))?.to_owned();
    let secure = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let tls = if secure { Some(tls(connection)?) } else { None };
    Ok(Route::through(Server::Tcp { host, port, tls }))
}

fn tls(connection: &Value) -> Result<(Arc<rustls::ClientConfig>, Option<String>), String> {
    let text = |field: &str| connection.str_at(&["transport", "tcp", "tlsConfig", field]).to_owned();
    let (cert, key, bundle) = (text("clientCert"), text("clientKey"), text("caBundle"));
    let certificate = ClientCertificate::load(cert.clone().into(), key.clone().into())
        .map_err(|why| format!("failed to read key pair {cert} & {key}, got {why}"))?;
    let trust = match bundle.as_str() {
        "" => Trust::System,
        file => {
            let pem = std::fs::read(file).map_err(|why| format!("failed to read cert file {file}, got {why}"))?;
            Trust::Authorities(pem)
        }
    };
    let server_name = Some(text("tlsServerName")).filter(|name| !name.is_empty());
    let client = TlsClient { trust, server_name: server_name.clone(), certificate, flaws: None };
    let config = client.config().map_err(|_| "failed to append CA cert to the cert pool".to_owned())?;
    Ok((Arc::new(config), server_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(selections: &str) -> Result<Egress, String> {
        let head = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n";
        Egress::parse(format!("{head}egressSelections:\n{selections}").as_bytes())
    }

    #[test]
    fn routes() {
        let egress = parse(
            "- {name: Cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /run/proxy}}}}\n\
             - {name: controlplane, connection: {proxyProtocol: Direct}}\n\
             - {name: etcd, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /run/proxy}}}}\n",
        )
        .unwrap();
        assert!(matches!((&egress.cluster, &egress.control_plane), (Route::Through(_), Route::Direct)));
        assert!(matches!(&egress.etcd, Route::Through(proxy) if matches!(proxy.server, Server::Konnectivity(_))));
        let tcp =
            "- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://p:8'}}}}\n";
        assert!(matches!(parse(tcp).unwrap().cluster, Route::Through(_)));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let connection = |rest: &str| format!("- {{name: cluster, connection: {{{rest}}}}}\n");
        for (text, want) in [
            (
                connection("proxyProtocol: X"),
                "service.connection.protocol: Unsupported value: \"X\": supported values: \"Direct\", \"HTTPConnect\", \
                 \"GRPC\"",
            ),
            (
                connection("proxyProtocol: HTTPConnect"),
                "service.connection.transport: Required value: transport must be set for HTTPConnect",
            ),
            (
                connection("proxyProtocol: GRPC, transport: {tcp: {url: 'http://x'}}"),
                "service.connection.uds: Required value: UDS must be set with GRPC",
            ),
            (
                connection("proxyProtocol: HTTPConnect, transport: {tcp: {url: ftp}}"),
                "service.connection.url: Invalid value: \"ftp\": supported connection protocols are http:// and https://",
            ),
            (
                connection("proxyProtocol: Direct, transport: {}"),
                "service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect",
            ),
            (
                "- {name: odd, connection: {proxyProtocol: Direct}}\n".to_owned(),
                "service.connection: Unsupported value: \"odd\": supported values: \"cluster\", \"controlplane\", \"etcd\"",
            ),
        ] {
            let why = parse(&text).unwrap_err();
            assert_eq!(why, format!("failed to validate egress selector configuration: {want}"));
        }
        let unknown = parse("- {nom: x}\n").unwrap_err();
        assert!(unknown.ends_with("strict decoding error: unknown field \"egressSelections[0].nom\""), "{unknown}");
    }
}
