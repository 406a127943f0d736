//! Resources of another server: theirs are followed and deleted as ours are. The other server is one of ours, with a custom
//! resource, that believes the first one's front proxy.

use super::api::{Api, config_map};
use crate::support::Server;
use serde_json::{Value, json};

const WIDGETS: &str = "/apis/elsewhere.example.com/v1/namespaces/default/widgets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn widget(name: &str, owners: &[&Value]) -> Value {
    let mut object = config_map(name, owners);
    object["apiVersion"] = json!("elsewhere.example.com/v1");
    object["kind"] = json!("Widget");
    object
}

/// A server, and another one that it passes requests for widgets on to.
async fn two() -> (Server, Server) {
    let first = Server::start(&["--controllers=garbage-collector-controller,resourcequota-controller"]);
    let authority = first.dir.path().join("data/pki/front-proxy-ca.crt");
    let second = Server::start(&[
        &format!("--requestheader-client-ca-file={}", authority.display()),
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]);
    let mut api = Api::of(&second).await;
    let definition = json!({"metadata": {"name": "widgets.elsewhere.example.com"}, "spec": {
        "group": "elsewhere.example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    api.until(&second, WIDGETS, |list| list.is_some()).await;
    let mut api = Api::of(&first).await;
    let service =
        json!({"metadata": {"name": "elsewhere"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    api.create("/api/v1/namespaces/default/services", service).await;
    let remote = json!({"metadata": {"name": "v1.elsewhere.example.com"}, "spec": {"group": "elsewhere.example.com",
        "version": "v1", "service": {"namespace": "default", "name": "elsewhere", "port": second.port},
        "insecureSkipTLSVerify": true, "groupPriorityMinimum": 100, "versionPriority": 100}});
    api.create("/apis/apiregistration.k8s.io/v1/apiservices", remote).await;
    api.until(&first, WIDGETS, |list| list.is_some()).await;
    (first, second)
}

#[tokio::test]
async fn objects_of_other_servers_own_and_are_owned() {
    let (first, _second) = two().await;
    let mut api = Api::of(&first).await;
    let top = api.create(MAPS, config_map("top", &[])).await;
    let middle = api.create(WIDGETS, widget("middle", &[&top])).await;
    api.create(MAPS, config_map("bottom", &[&middle])).await;
    let free = api.create(WIDGETS, widget("free", &[])).await;
    api.create(MAPS, config_map("kept", &[&free])).await;
    api.delete(&format!("{MAPS}/top"), "Background").await;
    api.gone(&first, &format!("{WIDGETS}/middle")).await;
    api.gone(&first, &format!("{MAPS}/bottom")).await;
    assert!(api.get(&format!("{WIDGETS}/free")).await.is_some());
    assert!(api.get(&format!("{MAPS}/kept")).await.is_some());
}

#[tokio::test]
async fn objects_of_other_servers_count() {
    let (first, _second) = two().await;
    let mut api = Api::of(&first).await;
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    api.create(WIDGETS, widget("a", &[])).await;
    api.create(
        quotas,
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/widgets.elsewhere.example.com": "5"}}}),
    )
    .await;
    let used = |count: &'static str| {
        move |quota: Option<&Value>| {
            quota.is_some_and(|q| q["status"]["used"]["count/widgets.elsewhere.example.com"] == count)
        }
    };
    api.until(&first, &format!("{quotas}/q"), used("1")).await;
    api.delete(&format!("{WIDGETS}/a"), "").await;
    api.until(&first, &format!("{quotas}/q"), used("0")).await;
}
