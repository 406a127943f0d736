//! Servers on a real etcd cluster.

use super::support::{Site, config_map, revision, wait_until};
use kubelith_store::etcd::server::Cluster;
use kubelith_store::etcd::{EtcdOptions, EtcdStore};
use kubelith_store::{RangeRequest, Select, Store};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The keys below a prefix.
pub fn keys(cluster: &Cluster, prefix: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = EtcdStore::new(EtcdOptions::new(cluster.endpoints())).unwrap();
        let found = store.range(RangeRequest::prefix(prefix.to_owned()).select(Select::Keys)).await.unwrap();
        store.close().await;
        found.items.iter().map(|kv| String::from_utf8(kv.key.to_vec()).unwrap()).collect()
    })
}

pub fn site(cluster: &Cluster) -> Site {
    Site::new(&[&format!("--etcd-servers={}", cluster.endpoints().join(","))])
}

#[test]
fn two_servers_on_one_etcd_see_each_other_at_once() {
    let etcd = Cluster::start(1, &[]);
    let (one, other) = (site(&etcd), site(&etcd));
    let (one, other) = (one.start(), other.start());
    let (mut one, mut other) = (one.client(), other.client());
    for i in 0..20 {
        let made = one.create(CONFIG_MAPS, &config_map(&format!("c{i}"), "v"));
        let (code, seen) = other.get(&format!("{CONFIG_MAPS}/c{i}"));
        assert_eq!((code, &seen), (200, &made));
        let (_, list) = other.get(CONFIG_MAPS);
        let names: BTreeSet<&str> =
            list["items"].as_array().unwrap().iter().map(|o| o["metadata"]["name"].as_str().unwrap()).collect();
        assert!(names.contains(format!("c{i}").as_str()));
        std::mem::swap(&mut one, &mut other);
    }
}

#[test]
fn without_a_watch_cache_watches_begin_where_etcd_can() {
    let etcd = Cluster::start(1, &[]);
    let one = site(&etcd);
    let one = one.start();
    let mut api = one.client();
    let begun = revision(&api.create(CONFIG_MAPS, &config_map("a", "1")));
    api.create(CONFIG_MAPS, &config_map("b", "1"));
    assert_eq!(api.send("PUT", &format!("{CONFIG_MAPS}/a"), Some(&config_map("a", "2"))).0, 200);
    assert_eq!(api.send("DELETE", &format!("{CONFIG_MAPS}/b"), None).0, 200);
    // Both are started after that.
    let url = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let [cached, uncached] = ["true", "false"].map(|cache| Site::new(&[&url, &format!("--watch-cache={cache}")]));
    let seen = |site: &Site, count: usize| {
        let server = site.start();
        let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={begun}");
        let told = |event: &serde_json::Value| {
            let object = &event["object"];
            let what = object["metadata"]["name"].as_str().or(object["reason"].as_str()).unwrap();
            format!("{} {what}", event["type"].as_str().unwrap())
        };
        server.client().watch(&path, count).iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(seen(&cached, 1), ["ERROR Expired"]);
    assert_eq!(seen(&uncached, 3), ["ADDED b", "MODIFIED a", "DELETED b"]);
    // What etcd does not have any more is expired for everybody.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = EtcdStore::new(EtcdOptions::new(etcd.endpoints())).unwrap();
        store.compact(store.current_revision().await.unwrap()).await.unwrap();
        store.close().await;
    });
    assert_eq!(seen(&uncached, 1), ["ERROR Expired"]);
}

/// A place that belongs to the test all the time, and leads to `target` once it is opened: the port of a server that is
/// down may be taken by another test.
fn gate(target: &str) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let open = Arc::new(AtomicBool::new(false));
    let (target, opened) = (target.trim_start_matches("http://").to_owned(), open.clone());
    std::thread::spawn(move || {
        for client in listener.incoming().filter_map(Result::ok).filter(|_| opened.load(Ordering::Relaxed)) {
            let Ok(server) = TcpStream::connect(&target) else { continue };
            for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)] {
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    (address, open)
}

#[test]
fn an_etcd_that_is_late_is_waited_for() {
    let etcd = Cluster::start(1, &[]);
    let server = loop {
        let (address, open) = gate(&etcd.endpoints()[0]);
        let site = Site::new(&[&format!("--etcd-servers={address}")]);
        let mut server = site.spawn();
        wait_until("the server looks for etcd", || server.log().contains("the store does not answer"));
        open.store(true, Ordering::Relaxed);
        // The server takes its port only when etcd is there; by then another test may have it.
        if server.is_ready() {
            break (server, site);
        }
    };
    let (server, _site) = server;
    assert!(server.log().lines().next().is_some_and(|line| line.contains("Version: v1.36.")), "{}", server.log());
    assert_eq!(server.client().get(CONFIG_MAPS).0, 200);
}

#[test]
fn a_lost_leader_costs_no_write_and_no_event() {
    let mut etcd = Cluster::start(3, &[]);
    let (writing, watching) = (site(&etcd), site(&etcd));
    let (writing, watching) = (writing.start(), watching.start());
    let from = revision(&watching.client().get(CONFIG_MAPS).1);
    let acked = Arc::new(Mutex::new(Vec::new()));
    let (count, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let mut api = writing.client();
            let (acked, count, stop) = (acked.clone(), count.clone(), stop.clone());
            std::thread::spawn(move || {
                for i in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("w{writer}-{i}");
                    // While there is no leader, writes fail: those are not acknowledged.
                    if let Ok((201, object)) = api.try_send("POST", CONFIG_MAPS, Some(&config_map(&name, "v"))) {
                        acked.lock().unwrap().push((name, revision(&object)));
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    wait_until("there is load", || count.load(Ordering::Relaxed) > 20);
    let leader = leader(&etcd);
    etcd.kill(leader);
    let before = count.load(Ordering::Relaxed);
    wait_until("writes go on with a new leader", || count.load(Ordering::Relaxed) > before + 20);
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().unwrap();
    }

    let mut acked = std::mem::take(&mut *acked.lock().unwrap());
    acked.sort_by_key(|(_, at)| *at);
    let (code, list) = watching.client().get(CONFIG_MAPS);
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap();
    let listed: BTreeSet<(&str, i64)> =
        items.iter().map(|o| (o["metadata"]["name"].as_str().unwrap(), revision(o))).collect();
    for (name, at) in &acked {
        assert!(listed.contains(&(name.as_str(), *at)), "{name} at {at} is lost");
    }
    // What a watch shows that began before the leader went: all of it, in order.
    let events =
        watching.client().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}"), items.len() - initial(items));
    let seen: Vec<i64> = events.iter().map(|event| revision(&event["object"])).collect();
    assert!(seen.is_sorted_by(|a, b| a < b), "events are out of order");
    for (name, at) in &acked {
        assert!(seen.binary_search(at).is_ok(), "{name} at {at} was never seen");
    }
}

/// Objects that were there before the load.
fn initial(items: &[serde_json::Value]) -> usize {
    items.iter().filter(|o| !o["metadata"]["name"].as_str().unwrap().starts_with('w')).count()
}

fn leader(cluster: &Cluster) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = EtcdStore::new(EtcdOptions::new(cluster.endpoints())).unwrap();
        let status = store.endpoint_status().await;
        let place = status.iter().position(|(_, status)| status.as_ref().is_ok_and(|status| status.is_leader));
        store.close().await;
        place.expect("a leader")
    })
}

/// A proxy at a socket that leads to `target`, by a name that only it knows.
fn proxy(socket: &std::path::Path, name: &'static str, target: &str) {
    let (listener, target) = (UnixListener::bind(socket).unwrap(), target.trim_start_matches("http://").to_owned());
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let target = target.clone();
            std::thread::spawn(move || {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    client.read_exact(&mut byte)?;
                    head.extend(byte);
                }
                if !head.starts_with(format!("CONNECT {name} HTTP/1.1\r\n").as_bytes()) {
                    return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
                }
                let server = TcpStream::connect(&target)?;
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                let (mut up, mut down) = (server.try_clone()?, client.try_clone()?);
                std::thread::spawn(move || std::io::copy(&mut &server, &mut down));
                std::io::copy(&mut client, &mut up).map(drop)
            });
        }
    });
}

#[test]
fn an_etcd_behind_a_proxy_is_reached_through_it() {
    let etcd = Cluster::start(1, &[]);
    let folder = tempfile::tempdir().unwrap();
    let (socket, file) = (folder.path().join("proxy.sock"), folder.path().join("egress.yaml"));
    proxy(&socket, "etcd.behind.invalid:2379", &etcd.endpoints()[0]);
    let selection = format!(
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: etcd\n  \
         connection: {{proxyProtocol: HTTPConnect, transport: {{uds: {{udsName: {}}}}}}}\n",
        socket.display()
    );
    std::fs::write(&file, selection).unwrap();
    let site = Site::new(&[
        "--etcd-servers=http://other.behind.invalid:2379,http://etcd.behind.invalid:2379",
        &format!("--egress-selector-config-file={}", file.display()),
    ]);
    let server = site.start();
    let mut api = server.client();
    api.create(CONFIG_MAPS, &config_map("tunneled", "v"));
    assert!(keys(&etcd, "/registry/configmaps/default/").iter().any(|key| key.ends_with("/tunneled")));
    let metrics = api.text("/metrics");
    let way = r#"{protocol="http_connect",transport="uds"}"#;
    assert!(metrics.contains(&format!("apiserver_egress_dialer_dial_start_total{way}")), "{metrics}");
    assert!(metrics.contains(&format!("apiserver_egress_dialer_dial_duration_seconds_count{way}")), "{metrics}");
}
