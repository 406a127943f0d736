//! A server that is dropped leaves nothing behind. The only test of its program: it counts threads and memory.

mod support;

use kubelith_testing::Kubelith;
use serde_json::json;
use support::until;
use tokio::net::TcpStream;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Those of servers.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let name = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm")).unwrap_or_default();
    tasks.filter(|task| name(task.path()).starts_with("kubelith")).count()
}

/// Folders of servers of this process. Others may run beside it, so their names are told apart by what is new.
fn folders() -> std::collections::BTreeSet<std::ffi::OsString> {
    let entries =
        std::fs::read_dir(std::env::temp_dir()).unwrap().filter_map(Result::ok).map(|entry| entry.file_name());
    entries.filter(|name| name.to_string_lossy().starts_with("kubelith-")).collect()
}

fn resident_megabytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4 / 1024
}

async fn come_and_go(times: usize) {
    for _ in 0..times {
        let server = Kubelith::start().await.unwrap();
        let fork = server.fork().await.unwrap();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert_eq!(fork.post(MAPS, &map).await.unwrap().code, 201);
        drop((server, fork));
        until("no thread is left", || async { threads() == 0 }).await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_servers_that_are_gone() {
    let others = folders();
    let server = Kubelith::start().await.unwrap();
    let address = server.address().unwrap();
    assert_eq!(server.address().unwrap(), address, "one port, however often it is asked for");
    assert!(TcpStream::connect(address).await.is_ok());
    assert!(server.kubeconfig().unwrap().contains(&format!("server: https://{address}")));
    let ours = folders().difference(&others).count();
    assert!(threads() > 0 && ours > 0);
    let connector = server.connector();
    drop(server);
    assert!(connector.connect().is_err());
    until("no thread is left", || async { threads() == 0 }).await;
    until("the port is closed", || async { TcpStream::connect(address).await.is_err() }).await;
    assert!(folders().difference(&others).count() < ours, "its files are gone");

    come_and_go(5).await;
    let before = resident_megabytes();
    come_and_go(15).await;
    let grown = resident_megabytes().saturating_sub(before);
    assert!(grown < 45, "{grown} MB more after 15 servers and as many forks, each of which takes about ten");
}
