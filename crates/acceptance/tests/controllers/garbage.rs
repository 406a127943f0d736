//! Owner references are followed.

use super::api::{Api, blocking, config_map};
use super::namespaces::definition;
use crate::support::Server;
use serde_json::{Value, json};

const ON: &str = "--controllers=garbage-collector-controller";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[tokio::test]
async fn background_orphan_and_foreground() {
    let server = Server::start(&[ON]);
    let mut api = Api::of(&server).await;
    // Background: owners first, all levels of dependents after them.
    let a = api.create(MAPS, config_map("a", &[])).await;
    let b = api.create(MAPS, config_map("b", &[&a])).await;
    api.create(MAPS, config_map("c", &[&b])).await;
    let kept = api.create(MAPS, config_map("kept", &[])).await;
    api.create(MAPS, config_map("both", &[&a, &kept])).await;
    api.delete(&map("a"), "Background").await;
    for name in ["b", "c"] {
        api.gone(&server, &map(name)).await;
    }
    // An owner is left: only the reference to the other goes.
    let refs = |n: usize| move |o: Option<&Value>| references(o) == n;
    let both = api.until(&server, &map("both"), refs(1)).await.unwrap();
    assert_eq!(both["metadata"]["ownerReferences"][0]["name"], "kept");

    // Orphan: dependents stay and forget their owner.
    api.delete(&map("kept"), "Orphan").await;
    api.gone(&server, &map("kept")).await;
    api.until(&server, &map("both"), refs(0)).await;

    // Foreground: the owner goes after those that block it.
    let f = api.create(MAPS, config_map("f", &[])).await;
    let mut held = blocking("held", &[&f]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.create(MAPS, held).await;
    api.create(MAPS, config_map("free", &[&f])).await;
    api.delete(&map("f"), "Foreground").await;
    api.gone(&server, &map("free")).await;
    let deleting = |o: Option<&Value>| o.is_some_and(|o| !o["metadata"]["deletionTimestamp"].is_null());
    api.until(&server, &map("held"), deleting).await;
    let owner = api.get(&map("f")).await.unwrap();
    assert_eq!(owner["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    api.change(&map("held"), |o| o["metadata"]["finalizers"] = json!([])).await;
    api.gone(&server, &map("held")).await;
    api.gone(&server, &map("f")).await;
}

fn references(object: Option<&Value>) -> usize {
    object.and_then(|o| o["metadata"]["ownerReferences"].as_array()).map_or(0, Vec::len)
}

#[tokio::test]
async fn custom_resources_absent_owners_and_wrong_references() {
    let server = Server::start(&[ON]);
    let mut api = Api::of(&server).await;
    // An owner that never was.
    let ghost = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}});
    api.create(MAPS, config_map("haunted", &[&ghost])).await;
    api.gone(&server, &map("haunted")).await;

    // An owner of the right name in another namespace.
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await;
    let far = api.create("/api/v1/namespaces/other/configmaps", config_map("far", &[])).await;
    let near = api.create(MAPS, config_map("near", &[&far])).await;
    api.gone(&server, &map("near")).await;
    assert!(api.get("/api/v1/namespaces/other/configmaps/far").await.is_some());
    let events = "/api/v1/namespaces/default/events?fieldSelector=reason%3DOwnerRefInvalidNamespace";
    let found = |l: Option<&Value>| l.is_some_and(|l| !l["items"].as_array().unwrap().is_empty());
    let event = &api.until(&server, events, found).await.unwrap()["items"][0];
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["source"]["component"], "garbage-collector-controller");
    assert_eq!(event["involvedObject"]["uid"], near["metadata"]["uid"]);
    let uid = far["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        event["message"],
        format!(
            "ownerRef [v1/ConfigMap, namespace: default, name: far, uid: {uid}] does not exist in namespace \"default\""
        )
    );

    // An owner whose kind nobody serves is not absent: nobody can tell.
    let strange = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "s", "uid": "s-uid"}});
    api.create(MAPS, config_map("waits", &[&strange])).await;

    // Custom resources own and are owned.
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("gadgets")).await;
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    api.until(&server, gadgets, |list| list.is_some()).await;
    let gadget = |name: &str, owners: &[&Value]| {
        let mut object = config_map(name, owners);
        object["apiVersion"] = json!("example.com/v1");
        object["kind"] = json!("Gadget");
        object
    };
    let top = api.create(gadgets, gadget("top", &[])).await;
    let owned = api.create(MAPS, config_map("owned", &[&top])).await;
    api.create(gadgets, gadget("below", &[&owned])).await;
    api.delete(&format!("{gadgets}/top"), "Background").await;
    api.gone(&server, &map("owned")).await;
    api.gone(&server, &format!("{gadgets}/below")).await;
    // They know no strategic merge patch.
    let top = api.create(gadgets, gadget("top", &[])).await;
    api.create(gadgets, gadget("orphan", &[&top])).await;
    api.delete(&format!("{gadgets}/top"), "Orphan").await;
    api.gone(&server, &format!("{gadgets}/top")).await;
    let orphan = api.get(&format!("{gadgets}/orphan")).await;
    assert!(orphan.is_some() && references(orphan.as_ref()) == 0);
    assert!(api.get(&map("waits")).await.is_some());

    // Owners without a namespace are everybody's.
    let class = json!({"metadata": {"name": "p"}, "value": 1});
    let class = api.create("/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
    api.create(MAPS, config_map("classy", &[&class])).await;
    api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/p", "").await;
    api.gone(&server, &map("classy")).await;
}

#[tokio::test]
async fn two_that_block_each_other_go() {
    let server = Server::start(&[ON]);
    let mut api = Api::of(&server).await;
    let a = api.create(MAPS, config_map("a", &[])).await;
    let b = api.create(MAPS, blocking("b", &[&a])).await;
    api.change(&map("a"), |o| {
        o["metadata"]["ownerReferences"] = blocking("a", &[&b])["metadata"]["ownerReferences"].clone()
    })
    .await;
    api.delete(&map("a"), "Foreground").await;
    api.gone(&server, &map("a")).await;
    api.gone(&server, &map("b")).await;
}
