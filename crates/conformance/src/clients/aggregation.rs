//! An extension API server beside the one under test: a small metrics.k8s.io, for `kubectl top`.

use super::kubectl::Kubectl;
use super::{Check, Context, Outcome, process};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

pub fn checks() -> Vec<Check> {
    vec![Check::new("aggregation/top", top)]
}

fn top(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "aggregation-top")?;
    let pki = context.kubeconfig.with_file_name("pki");
    let port = start(&pki)?;
    kubectl.feed(&["apply", "-f", "-"], &objects(port))?;
    let size = r#"{"status":{"allocatable":{"cpu":"2","memory":"4Gi"}}}"#;
    kubectl.ok(&["patch", "node/worker-aggregation", "--subresource=status", "--type=merge", "-p", size])?;
    let available = process::eventually(|| {
        kubectl.has("apiservice/v1beta1.metrics.k8s.io", "{.status.conditions[0].reason}", "Passed")
    });
    let outcome = available.and_then(|()| {
        kubectl.says(&["get", "--raw", "/apis/metrics.k8s.io/v1beta1"], &["APIResourceList"])?;
        kubectl.says(&["top", "pod"], &["NAME", "web-0", "250m", "64Mi"])?;
        kubectl.says(&["top", "node"], &["worker-aggregation", "500m", "25%", "1024Mi"])?;
        kubectl.says(&["api-resources", "--api-group=metrics.k8s.io"], &["PodMetrics", "NodeMetrics"])
    });
    kubectl.ok(&["delete", "apiservice/v1beta1.metrics.k8s.io", "node/worker-aggregation"])?;
    outcome
}

/// A service that stands for loopback, the registration, and the node whose usage is told.
fn objects(port: u16) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: metrics-server}}
spec: {{type: ExternalName, externalName: localhost}}
---
apiVersion: v1
kind: Node
metadata: {{name: worker-aggregation}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1beta1.metrics.k8s.io}}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {{namespace: aggregation-top, name: metrics-server, port: {port}}}
"
    )
}

/// Serves until the program ends, with the certificate of the server under test.
fn start(pki: &Path) -> Result<u16, String> {
    let text = |error: &dyn std::fmt::Display| format!("metrics server: {error}");
    let chain = CertificateDer::pem_file_iter(pki.join("apiserver.crt")).map_err(|e| text(&e))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|e| text(&e))?;
    let key = PrivateKeyDer::from_pem_file(pki.join("apiserver.key")).map_err(|e| text(&e))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| text(&e))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| text(&e))?;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| text(&e))?;
    let port = listener.local_addr().map_err(|e| text(&e))?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = config.clone();
            // A connection that breaks is the client's business.
            std::thread::spawn(move || serve(config, stream));
        }
    });
    Ok(port)
}

fn serve(config: Arc<ServerConfig>, stream: TcpStream) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut header = String::from("-");
        while !header.trim().is_empty() {
            header.clear();
            stream.read_line(&mut header)?;
        }
        let path = line.split(' ').nth(1).unwrap_or_default();
        let (code, body) = answer(path.split('?').next().unwrap_or_default());
        let head =
            format!("HTTP/1.1 {code} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let stream = stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        stream.flush()?;
    }
}

fn answer(path: &str) -> (u16, &'static str) {
    match path {
        "/apis/metrics.k8s.io/v1beta1" => (
            200,
            r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/v1beta1","resources":[
            {"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics","verbs":["get","list"]},
            {"name":"pods","singularName":"","namespaced":true,"kind":"PodMetrics","verbs":["get","list"]}]}"#,
        ),
        "/apis/metrics.k8s.io/v1beta1/nodes" => (
            200,
            r#"{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[
            {"metadata":{"name":"worker-aggregation"},"timestamp":"2026-01-01T00:00:00Z","window":"10s",
            "usage":{"cpu":"500m","memory":"1Gi"}}]}"#,
        ),
        "/apis/metrics.k8s.io/v1beta1/namespaces/aggregation-top/pods" => (
            200,
            r#"{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[
            {"metadata":{"name":"web-0","namespace":"aggregation-top"},"timestamp":"2026-01-01T00:00:00Z","window":"10s",
            "containers":[{"name":"web","usage":{"cpu":"250m","memory":"64Mi"}}]}]}"#,
        ),
        _ => (404, "{}"),
    }
}
