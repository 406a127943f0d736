//! What the store has kept of an object is told, whichever process wrote it.

use super::support::{Api, Site, config_map, wait_until};
use kubelith_store::etcd::server::Cluster;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const HISTORY: &str = "/kubelith/v1/history?resource=configmaps&namespace=default";

fn told(history: &Value) -> Vec<(&str, &str)> {
    let items = history["items"].as_array().unwrap_or_else(|| panic!("{history}"));
    items.iter().map(|v| (v["type"].as_str().unwrap(), v["object"]["data"]["value"].as_str().unwrap())).collect()
}

/// Asks until all is told: a store that is silent for half a second, as on a busy machine, is taken to have told its past.
fn tells(api: &mut Api, query: &str, want: &[(&str, &str)]) {
    wait_until(&format!("{query} tells {want:?}"), || told(&api.get(&format!("{HISTORY}{query}")).1) == want);
}

/// Changes and deletes objects, starts anew, and asks.
fn survives_a_restart(site: &Site) {
    let server = site.start();
    let mut api = server.client();
    api.create(CONFIG_MAPS, &config_map("a", "1"));
    api.create(CONFIG_MAPS, &config_map("b", "1"));
    for value in ["2", "3"] {
        let (code, answer) = api.send("PATCH", &format!("{CONFIG_MAPS}/a"), Some(&json!({"data": {"value": value}})));
        assert_eq!(code, 200, "{answer}");
    }
    assert_eq!(api.send("DELETE", &format!("{CONFIG_MAPS}/b"), None).0, 200);
    server.stop();

    let server = site.start();
    let mut api = server.client();
    tells(&mut api, "&name=a", &[("MODIFIED", "3"), ("MODIFIED", "2"), ("ADDED", "1")]);
    wait_until("b is told to be gone", || {
        let (_, gone) = api.get(HISTORY);
        gone["items"][0]["name"] == "b" && gone["items"].as_array().is_some_and(|items| items.len() == 1)
    });
    tells(&mut api, "&name=b", &[("DELETED", "1"), ("ADDED", "1")]);
    // What is made again is no longer gone.
    api.create(CONFIG_MAPS, &config_map("b", "2"));
    let (_, gone) = api.get(HISTORY);
    assert_eq!(gone["items"], json!([]));
    tells(&mut api, "&name=b", &[("ADDED", "2"), ("DELETED", "1"), ("ADDED", "1")]);
}

#[test]
fn in_the_embedded_store() {
    survives_a_restart(&Site::new(&["--enable-console"]));
}

#[test]
fn in_etcd() {
    let etcd = Cluster::start(1, &[]);
    let site = Site::new(&["--enable-console", &format!("--etcd-servers={}", etcd.endpoints().join(","))]);
    survives_a_restart(&site);
}
