//! `--egress-selector-config-file`: what leaves the server goes by the proxy that is named.

use super::server;
use super::stub::{Reply, Stub};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A proxy on loopback, and what it was asked for.
fn proxy() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (port, asked) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default());
    let told = asked.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let told = told.clone();
            std::thread::spawn(move || tunnel(client, &told));
        }
    });
    (port, asked)
}

fn tunnel(mut client: TcpStream, told: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    told.lock().unwrap().push(first.trim().to_owned());
    let mut server = TcpStream::connect(first.split(' ').nth(1)?).ok()?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    let (mut from_server, mut to_client) = (server.try_clone().ok()?, client);
    std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
    std::io::copy(&mut reader, &mut server).ok().map(drop)
}

/// The flag for what goes to the control plane by the proxy at this port.
fn to_control_plane(dir: &Path, port: u16) -> String {
    let egress = dir.join("egress.yaml");
    let file = format!(
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: \
         controlplane\n  connection: {{proxyProtocol: HTTPConnect, transport: {{tcp: {{url: 'http://127.0.0.1:{port}'}}}}}}\n"
    );
    std::fs::write(&egress, file).unwrap();
    format!("--egress-selector-config-file={}", egress.display())
}

#[test]
fn webhooks_are_asked_through_the_proxy() {
    let hook = Stub::start(|_, _| {
        let status = r#"{"authenticated":true,"user":{"username":"carol"}}"#;
        Reply::Json(
            200,
            format!(r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{status}}}"#),
        )
    });
    let (port, asked) = proxy();
    let dir = tempfile::tempdir().unwrap();
    let (server, _tokens) = server(&[
        &to_control_plane(dir.path(), port),
        &format!("--authentication-token-webhook-config-file={}", hook.kubeconfig(dir.path(), "hook")),
        "--authentication-token-webhook-version=v1",
    ]);
    assert_eq!(server.who_has("whatever").unwrap(), "carol system:authenticated");
    let want = format!("CONNECT 127.0.0.1:{} HTTP/1.1", hook.port);
    assert!(asked.lock().unwrap().contains(&want), "{asked:?}");
}

/// The collector's name is nobody's: only who asks the proxy for it comes anywhere.
#[test]
fn traces_leave_through_the_proxy() {
    let (port, asked) = proxy();
    let dir = tempfile::tempdir().unwrap();
    let tracing = dir.path().join("tracing.yaml");
    let file = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: collector.invalid:4317\n\
                samplingRatePerMillion: 1000000\n";
    std::fs::write(&tracing, file).unwrap();
    let (server, _tokens) =
        server(&[&to_control_plane(dir.path(), port), &format!("--tracing-config-file={}", tracing.display())]);
    assert_eq!(server.get("/version").unwrap().status, 200);
    // What has come is sent before the server ends, and no later than some seconds after it came.
    server.signal("TERM");
    let want = "CONNECT collector.invalid:4317 HTTP/1.1".to_owned();
    server.wait_for("the proxy is asked", || asked.lock().unwrap().contains(&want));
}
