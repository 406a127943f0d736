//! CustomResourceDefinitions on two servers that share an etcd: what one acknowledged holds for the other.

use super::support::{Api, Site, wait_until};
use kubelith_store::etcd::server::Cluster;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(plural: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": spec}},
            }}}],
        },
    })
}

fn objects(plural: &str) -> String {
    format!("/apis/example.com/v1/namespaces/default/{plural}")
}

fn object(plural: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": plural, "metadata": {"name": name}, "spec": spec})
}

fn is_established(api: &mut Api, plural: &str) -> bool {
    let (_, definition) = api.get(&format!("{DEFINITIONS}/{plural}.example.com"));
    let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// Whether discovery of a version shows the resource.
fn is_discovered(api: &mut Api, plural: &str) -> bool {
    let (_, list) = api.get("/apis/example.com/v1");
    list["resources"].as_array().is_some_and(|resources| resources.iter().any(|r| r["name"] == plural))
}

#[test]
fn what_one_server_established_the_other_serves() {
    let etcd = Cluster::start(1, &[]);
    let flag = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let sites = [Site::new(&[&flag]), Site::new(&[&flag])];
    let servers = [sites[0].start(), sites[1].start()];
    let (mut one, mut other) = (servers[0].client(), servers[1].client());
    for round in 0..4 {
        let plural = format!("things{round}");
        one.create(DEFINITIONS, &definition(&plural, json!({"a": {"type": "string"}})));
        wait_until("it is established", || is_established(&mut one, &plural));
        // At once, without waiting for anything.
        other.create(&objects(&plural), &object(&plural, "x", json!({"a": "1", "b": "2"})));
        let (code, seen) = one.get(&format!("{}/x", objects(&plural)));
        assert_eq!((code, &seen["spec"]), (200, &json!({"a": "1"})));
        wait_until("the other shows it", || is_discovered(&mut other, &plural));

        // A schema that was replaced is not used any more, for neither reads nor writes.
        let schema = json!({"a": {"type": "string"}, "b": {"type": "string", "default": "new"}});
        let (_, mut current) = one.get(&format!("{DEFINITIONS}/{plural}.example.com"));
        current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = schema;
        let (code, answer) = one.send("PUT", &format!("{DEFINITIONS}/{plural}.example.com"), Some(&current));
        assert_eq!(code, 200, "{answer}");
        let (_, seen) = other.get(&format!("{}/x", objects(&plural)));
        assert_eq!(seen["spec"], json!({"a": "1", "b": "new"}));
        let made = other.create(&objects(&plural), &object(&plural, "y", json!({"b": "kept"})));
        assert_eq!(made["spec"], json!({"b": "kept"}));
        std::mem::swap(&mut one, &mut other);
    }
}

#[test]
fn definitions_outlive_every_server() {
    let etcd = Cluster::start(1, &[]);
    let flag = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let sites = [Site::new(&[&flag]), Site::new(&[&flag])];
    let (one, other) = (sites[0].start(), sites[1].start());
    let mut api = one.client();
    api.create(DEFINITIONS, &definition("things", json!({"a": {"type": "string"}})));
    wait_until("it is established", || is_established(&mut api, "things"));
    api.create(&objects("things"), &object("things", "x", json!({"a": "1"})));

    // Made before it was restarted.
    other.stop();
    let other = sites[1].start();
    let mut api = other.client();
    assert_eq!(api.get(&format!("{}/x", objects("things"))).1["spec"], json!({"a": "1"}));
    assert!(is_discovered(&mut api, "things"));

    // Made, and deleted, while the first one was away.
    one.stop();
    api.create(DEFINITIONS, &definition("others", json!({})));
    wait_until("it is established", || is_established(&mut api, "others"));
    assert_eq!(api.send("DELETE", &format!("{DEFINITIONS}/things.example.com"), None).0, 200);
    wait_until("it is gone", || api.get(&format!("{DEFINITIONS}/things.example.com")).0 == 404);
    let one = sites[0].start();
    let mut api = one.client();
    api.create(&objects("others"), &object("others", "x", json!({})));
    assert_eq!(api.get(&objects("things")).0, 404);
    assert!(!is_discovered(&mut api, "things") && is_discovered(&mut api, "others"));
}
