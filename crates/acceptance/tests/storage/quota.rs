//! Quotas under requests at once: never more is let in than fits, at one server and at two.

use super::support::{Server, Site, config_map, wait_until};
use kubelith_store::etcd::server::Cluster;
use serde_json::json;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CLIENTS: usize = 200;
const CREATES: usize = 1;
const LIMIT: usize = 37;

/// Creates config maps at once, at all servers in turn. Answers how many were let in; all others were refused by the quota.
fn race(servers: &[&Server]) -> usize {
    let creating = |client: usize| {
        let mut api = servers[client % servers.len()].client();
        std::thread::spawn(move || {
            let mut admitted = 0;
            for i in 0..CREATES {
                let (code, answer) = api.send("POST", CONFIG_MAPS, Some(&config_map(&format!("m{client}-{i}"), "v")));
                match code {
                    201 => admitted += 1,
                    403 => {
                        let message = answer["message"].as_str().unwrap();
                        assert!(message.contains("exceeded quota: maps, requested: configmaps=1"), "{message}");
                    }
                    _ => panic!("{code} {answer}"),
                }
            }
            admitted
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(creating).collect();
    clients.into_iter().map(|client| client.join().unwrap()).sum()
}

fn quota_holds(servers: &[&Server]) {
    let mut api = servers[0].client();
    let hard = json!({"configmaps": LIMIT.to_string(), "secrets": "10"});
    let mut quota = json!({"metadata": {"name": "maps"}, "spec": {"hard": hard}});
    // As the quota controller would: it counts what is there.
    quota = api.create(QUOTAS, &quota);
    quota["status"] = json!({"hard": hard, "used": {"configmaps": "0", "secrets": "0"}});
    let path = format!("{QUOTAS}/maps");
    let (code, answer) = api.send("PUT", &format!("{path}/status"), Some(&quota));
    assert_eq!(code, 200, "{answer}");
    // A server limits nobody by a quota that it has not seen: another one may hear of it a moment later.
    for server in servers {
        let mut api = server.client();
        wait_until("the quota is there", || {
            api.get(&format!("{path}?resourceVersion=0")).1["status"]["used"]["configmaps"] == "0"
        });
    }

    assert_eq!(race(servers), LIMIT);
    let (_, quota) = api.get(&path);
    assert_eq!(quota["status"]["used"], json!({"configmaps": LIMIT.to_string(), "secrets": "0"}));
    let writers: Vec<&str> = quota["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert!(writers.contains(&"kube-apiserver"), "{writers:?}");
    let dry_run = format!("{CONFIG_MAPS}?dryRun=All");
    assert_eq!(api.send("POST", &dry_run, Some(&config_map("dry", "v"))).0, 403);
    // A quota that is gone limits nothing, for the very next request.
    assert_eq!(api.send("DELETE", &path, None).0, 200);
    assert_eq!(api.send("POST", CONFIG_MAPS, Some(&config_map("more", "v"))).0, 201);
}

#[test]
fn requests_at_once_never_pass_a_quota() {
    let site = Site::new(&[]);
    quota_holds(&[&site.start()]);
}

#[test]
fn two_servers_never_pass_a_quota() {
    let etcd = Cluster::start(1, &[]);
    let (one, other) = (super::etcd::site(&etcd), super::etcd::site(&etcd));
    quota_holds(&[&one.start(), &other.start()]);
}
