//! A fresh server has the objects that a fresh kube-apiserver has, and the same health checks.

use crate::support::Server;
use serde_json::Value;
use std::collections::BTreeMap;

#[test]
fn a_fresh_server_has_what_the_reference_has() {
    let server = Server::start(&["--service-cluster-ip-range=10.0.0.0/16"]);
    let facts = include_str!("../../../../tests/bootstrap/objects.json");
    let wanted: BTreeMap<String, Vec<Value>> = serde_json::from_str(facts).unwrap();
    // Some of it is made when the server is ready, by its first clients: itself.
    server.wait_for("complete", || wanted.iter().all(|(r, objects)| list(&server, r).len() >= objects.len()));
    let mut differences = String::new();
    for (resource, objects) in &wanted {
        let found = keyed(resource, list(&server, resource), server.port);
        for (key, object) in keyed(resource, objects.clone(), 18443) {
            match found.get(&key) {
                Some(same) if *same == object => {}
                other => differences += &format!("{resource} {key}\n  want {object}\n  got  {other:?}\n"),
            }
        }
        for key in found.keys().filter(|k| !keyed(resource, objects.clone(), 18443).contains_key(*k)) {
            differences += &format!("{resource} {key}\n  not on a fresh server of the reference\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

fn list(server: &Server, resource: &str) -> Vec<Value> {
    let root = if resource.starts_with("v1/") { "api" } else { "apis" };
    let answer = server.get(&format!("/{root}/{resource}")).unwrap();
    assert_eq!(answer.status, 200, "{resource}");
    let mut list: Value = serde_json::from_slice(&answer.body).unwrap();
    serde_json::from_value(list["items"].take()).unwrap()
}

/// Objects by namespace and name, without what differs from server to server.
fn keyed(resource: &str, objects: Vec<Value>, port: u16) -> BTreeMap<String, Value> {
    let keyed = objects.into_iter().map(|mut object| {
        let meta = object["metadata"].as_object_mut().unwrap();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            meta.remove(field);
        }
        let key = format!(
            "{}/{}",
            meta.get("namespace").and_then(Value::as_str).unwrap_or(""),
            meta["name"].as_str().unwrap()
        );
        match resource {
            "v1/configmaps" => {
                for value in object["data"].as_object_mut().unwrap().values_mut() {
                    *value = Value::from("own");
                }
                // Only with a front proxy.
                object["data"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("requestheader"));
            }
            "coordination.k8s.io/v1/leases" => {
                object["metadata"]["labels"]["kubernetes.io/hostname"] = "host".into();
                object["metadata"]["annotations"]["kubernetes.io/peer-advertise-address"] = "host".into();
                object["metadata"]["name"] = "host".into();
                object["spec"]["holderIdentity"] = "host".into();
                object["spec"]["renewTime"] = "now".into();
                return ("the identity".to_owned(), object);
            }
            "v1/services" | "v1/endpoints" | "discovery.k8s.io/v1/endpointslices" => {
                let own = without_own_address(&object.to_string(), port);
                object = serde_json::from_str(&own).unwrap();
            }
            _ => {}
        }
        for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = "now".into();
        }
        (key, object)
    });
    keyed.collect()
}

/// Ports and addresses of the server replaced by one word.
fn without_own_address(text: &str, port: u16) -> String {
    let own = host_address();
    text.replace(&format!(":{port}"), ":\"port\"").replace(&own, "host").replace("<host address>", "host")
}

fn host_address() -> String {
    kubelith_tls::local_names::primary_address().map_or_else(|| "127.0.0.1".to_owned(), |a| a.to_string())
}

/// The names of the checks in the reference's order; those of parts that are not there yet may be missing.
#[test]
fn health_names_the_references_checks_in_its_order() {
    let server = Server::start(&[]);
    let reference = include_str!("../../../../tests/bootstrap/checks.txt");
    for path in ["healthz", "livez", "readyz"] {
        let wanted: Vec<&str> =
            reference.lines().skip_while(|l| *l != format!("# {path}")).skip(1).take_while(|l| !l.is_empty()).collect();
        let answer = server.get(&format!("/{path}?verbose")).unwrap();
        let text = String::from_utf8(answer.body).unwrap();
        let shown: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("[+]")?.strip_suffix(" ok")).collect();
        assert!(shown.len() > 15, "{path}: {text}");
        let mut rest = wanted.iter();
        for name in &shown {
            assert!(rest.any(|w| w == name), "{path}: {name} is unknown or in the wrong place:\n{text}");
        }
    }
}
