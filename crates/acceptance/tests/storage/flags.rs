//! Flags of storage that show in what a server does.

use super::support::{Site, config_map, wait_until};
use kubelith_store::etcd::server::Cluster;
use serde_json::json;

#[test]
fn events_end_after_their_time() {
    let site = Site::new(&["--event-ttl=1s"]);
    let server = site.start();
    let mut api = server.client();
    let events = "/api/v1/namespaces/default/events";
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "reason": "Test"
    });
    api.create(events, &event);
    api.create("/api/v1/namespaces/default/configmaps", &config_map("c", "stays"));
    wait_until("the event is gone", || api.get(&format!("{events}/e")).0 == 404);
    assert_eq!(api.get("/api/v1/namespaces/default/configmaps/c").0, 200);
}

#[test]
fn storage_is_counted_and_checked() {
    let site = Site::new(&["--storage-backend=memory"]);
    let server = site.start();
    let mut api = server.client();
    api.create("/api/v1/namespaces/default/configmaps", &config_map("c", "v"));
    let metrics = api.text("/metrics");
    for line in [
        r#"etcd_requests_total{group="",operation="create",resource="configmaps"} "#,
        r#"etcd_request_duration_seconds_count{group="",operation="create",resource="configmaps"} "#,
        r#"apiserver_storage_objects{resource="configmaps"} "#,
        r#"apiserver_watch_cache_events_received_total{group="",resource="configmaps"} "#,
        r#"apiserver_watch_cache_initializations_total{group="",resource="configmaps"} 1"#,
        r#"apiserver_watch_cache_resource_version{group="",resource="configmaps"} "#,
    ] {
        assert!(metrics.contains(line), "{line} is missing");
    }
    wait_until("the size is measured", || {
        api.text("/metrics").contains(r#"apiserver_storage_size_bytes{storage_cluster_id="etcd-0"}"#)
    });
    for (path, checks) in [("/healthz", &["etcd"][..]), ("/livez", &["etcd"]), ("/readyz", &["etcd", "etcd-readiness"])]
    {
        let shown = api.text(&format!("{path}?verbose"));
        for check in checks {
            assert!(shown.contains(&format!("[+]{check} ok\n")), "{path}: {shown}");
        }
        assert_eq!(shown.contains("etcd-readiness"), checks.len() > 1, "{path}");
    }
}

#[test]
fn lists_of_any_age_have_pages_without_a_watch_cache() {
    let (secrets, events) = ("secrets", "events");
    // Caches are waited for: side by side, for that takes seconds.
    std::thread::scope(|scope| {
        for (flag, plural, shown) in [
            ("--watch-cache=true", secrets, 3),
            ("--watch-cache=false", secrets, 2),
            ("--watch-cache-sizes=pods#0,secrets#0", secrets, 2),
            ("--watch-cache-sizes=secrets#7,secrets.example.com#0", secrets, 3),
            // They have none in kube-apiserver, unless they are given a size.
            ("--watch-cache=true", events, 2),
            ("--watch-cache-sizes=events#7", events, 3),
        ] {
            scope.spawn(move || pages_by_flag(flag, plural, shown));
        }
    });
}

fn pages_by_flag(flag: &str, plural: &str, shown: usize) {
    let site = Site::new(&["--storage-backend=memory", flag]);
    let server = site.start();
    let mut api = server.client();
    for name in ["a", "b", "c"] {
        let object = json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}});
        let path = format!("/api/v1/namespaces/default/{plural}?fieldValidation=Ignore");
        api.create(&path, &object);
    }
    // What may be of any age may be older than the last write, unless somebody has waited for it.
    api.get(&format!("/api/v1/namespaces/default/{plural}"));
    let list = api.get(&format!("/api/v1/namespaces/default/{plural}?limit=2&resourceVersion=0")).1;
    assert_eq!(list["items"].as_array().unwrap().len(), shown, "{flag} {plural}");
    // What is not there yet: a cache may get there, the store says what it has.
    std::thread::scope(|scope| {
        for name in ["", "/a"] {
            let mut api = server.client();
            scope.spawn(move || {
                let path = format!("/api/v1/namespaces/default/{plural}{name}?resourceVersion=999999");
                let (code, answer) = api.get(&path);
                assert_eq!(code, 504, "{answer}");
                let again = answer["details"]["retryAfterSeconds"].as_i64();
                assert_eq!(again, (shown == 3).then_some(1), "{flag} {path}: {answer}");
            });
        }
    });
}

#[test]
fn some_resources_live_in_an_etcd_of_their_own() {
    let etcd = Cluster::start(1, &[]);
    let flag = format!("--etcd-servers-overrides=/configmaps#{}", etcd.endpoints()[0]);
    let site = Site::new(&["--storage-backend=memory", &flag]);
    let server = site.start();
    let mut api = server.client();
    api.create("/api/v1/namespaces/default/configmaps", &config_map("c", "v"));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    api.create("/api/v1/namespaces/default/secrets", &secret);
    let shown = api.text("/readyz?verbose");
    assert!(shown.contains("[+]etcd-override-0 ok") && shown.contains("[+]etcd-override-readiness-0 ok"), "{shown}");
    let keys = super::etcd::keys(&etcd, "/registry/");
    assert!(keys.contains(&"/registry/configmaps/default/c".to_owned()), "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("/registry/configmaps/")), "{keys:?}");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for (flag, why) in [
        (
            "--etcd-servers-overrides=nonsense",
            "--etcd-servers-overrides invalid, must be of format: group/resource#servers",
        ),
        ("--watch-cache-sizes=pods#x", "invalid size of watch cache size: pods#x"),
        ("--encryption-provider-config=/nonexistent", "error reading encryption provider configuration file"),
    ] {
        let said = Site::new(&["--storage-backend=memory", flag]).spawn().failure();
        assert!(said.contains(why), "{flag}: {said}");
    }
}
