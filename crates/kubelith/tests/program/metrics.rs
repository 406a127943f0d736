//! `/metrics` of a fresh server with a little traffic has the metrics that kube-apiserver has then, with the same types
//! and labels.

use crate::support::Server;
use crate::support::client::{Connection, Protocol};
use std::collections::{BTreeMap, BTreeSet};

/// What is not there, and why.
const MISSING: &[(&str, &[&str])] = &[
    (
        "there is no second implementation of the rules to compare with",
        &[
            "apiserver_validation_declarative_validation_mismatch_total",
            "apiserver_validation_declarative_validation_panic_total",
            "apiserver_validation_duplicate_validation_error_total",
        ],
    ),
    (
        "no client of ours takes credentials from plugins, and nothing that renews certificates is left to be collected",
        &[
            "rest_client_exec_plugin_certificate_rotation_age",
            "rest_client_exec_plugin_ttl_seconds",
            "rest_client_transport_cert_rotation_gc_calls_total",
        ],
    ),
    (
        "the field manager sees that nothing but times would change while it merges: there is nothing to compare",
        &["apiserver_request_timestamp_comparison_time"],
    ),
];

/// Of the client of etcd, and of leases there: an embedded store has none.
const OF_ETCD: &[&str] = &[
    "etcd_lease_object_counts",
    "grpc_client_handled_total",
    "grpc_client_msg_received_total",
    "grpc_client_msg_sent_total",
    "grpc_client_started_total",
];

#[derive(Default)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
}

/// The families of a text, with all label names of their samples.
fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            current = name.to_owned();
            families.insert(current.clone(), Family { kind: kind.to_owned(), ..Family::default() });
        } else if let (Some((_, rest)), false) = (line.split_once('{'), line.starts_with('#')) {
            let names = rest.split("=\"").filter_map(|part| part.rsplit([',', '{', '"']).next());
            let names = names.filter(|n| !matches!(*n, "le" | "quantile") && !n.contains(['}', ' ']));
            families.get_mut(&current).unwrap().labels.extend(names.map(str::to_owned));
        }
    }
    families
}

async fn traffic(server: &Server) {
    let mut client = Connection::open(server.address(), Protocol::Http2).await.unwrap();
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}"#;
    let event =
        r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}"#;
    for (method, path, body) in [
        ("GET", "/api/v1/pods", ""),
        ("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1", ""),
        ("POST", "/api/v1/namespaces", namespace),
        ("PUT", "/api/v1/namespaces/x", namespace),
        ("DELETE", "/api/v1/namespaces/x", ""),
        ("POST", "/api/v1/namespaces/default/events", event),
        ("GET", "/openapi/v3", ""),
        ("GET", "/nothing", ""),
        ("PUT", "/api/v1/namespaces", namespace),
        ("DELETE", "/version", ""),
    ] {
        client.send(method, path, body).await.unwrap_or_else(|why| panic!("{method} {path}: {why:?}"));
    }
}

#[test]
fn a_fresh_server_shows_what_the_reference_shows() {
    compare(&[], OF_ETCD);
}

#[test]
fn with_etcd_it_shows_what_its_client_does() {
    let etcd = crate::support::etcd();
    let text = compare(&[&format!("--etcd-servers={}", etcd.url)], &[]);
    let value = |series: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse::<f64>().ok());
        found.unwrap_or_else(|| panic!("there is no {series}"))
    };
    let service = r#"grpc_method="LeaseGrant",grpc_service="etcdserverpb.Lease",grpc_type="unary""#;
    let granted = value(&format!("grpc_client_handled_total{{grpc_code=\"OK\",{service}}}"));
    assert!(granted >= 1.0);
    assert_eq!(value(&format!("grpc_client_msg_received_total{{{service}}}")), granted);
    assert_eq!(value("etcd_lease_object_counts_count"), granted);
    // Each counts with the key that needed it.
    assert!(value("etcd_lease_object_counts_sum") >= granted);
    let watch = r#"{grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"}"#;
    assert!(value(&format!("grpc_client_started_total{watch}")) >= 1.0);
}

/// Compares what a server with these flags shows with what kube-apiserver does, without those in `absent`. Answers what it shows.
fn compare(flags: &[&str], absent: &[&'static str]) -> String {
    let policy = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(policy.path(), "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n").unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let audit = [
        format!("--audit-policy-file={}", policy.path().display()),
        format!("--audit-log-path={}", log.path().display()),
    ];
    let server = Server::start(&[flags, &[&audit[0], &audit[1]]].concat());
    tokio::runtime::Runtime::new().unwrap().block_on(traffic(&server));
    let text = String::from_utf8(server.get("/metrics").unwrap().body).unwrap();
    assert!(!text.contains("code=\"405\""), "what no route takes is not counted");
    let shown = families(&text);
    let mut missing: BTreeSet<&str> = MISSING.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    missing.extend(absent);
    let mut wrong = String::new();
    for line in include_str!("../../../../tests/bootstrap/metrics.txt").lines() {
        let (kind, rest) = line.split_once(' ').unwrap();
        let (name, labels) = rest.trim_end_matches('}').split_once('{').unwrap();
        let labels: BTreeSet<String> = labels.split(',').filter(|l| !l.is_empty()).map(str::to_owned).collect();
        match (shown.get(name), missing.remove(name)) {
            (None, true) => {}
            (None, false) => wrong += &format!("{name} is missing\n"),
            (Some(_), true) => wrong += &format!("{name} is there: take it off the list\n"),
            (Some(found), false) if found.kind == kind && found.labels == labels => {}
            (Some(found), false) => {
                wrong += &format!("{name} is a {} with {:?}, not a {kind} with {labels:?}\n", found.kind, found.labels);
            }
        }
    }
    assert!(missing.is_empty(), "not metrics of the reference: {missing:?}");
    assert!(wrong.is_empty(), "{wrong}");
    text
}
