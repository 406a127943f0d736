//! A restart with custom resources and another server's API: nobody hears that something is gone that is not there yet.

use crate::support::{Server, TOKEN};
use kubelith_conformance::http::{Address, Client, Request};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const RESTARTS: usize = 6;
const FLAGS: [&str; 1] = ["--storage-backend=embedded"];

const DEFINITION: &str = r#"{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
    "names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
    "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;
const SERVICE: &str = r#"{"metadata":{"name":"remote"},"spec":{"ports":[{"port":443}]}}"#;
const REMOTE: &str = r#"{"metadata":{"name":"v1.remote.example.com"},"spec":{"group":"remote.example.com","version":"v1",
    "service":{"namespace":"default","name":"remote"},"insecureSkipTLSVerify":true,"groupPriorityMinimum":100,
    "versionPriority":100}}"#;

/// What is there before and after.
const PATHS: [&str; 8] = [
    "/apis/example.com/v1/namespaces/default/things/a",
    "/apis/example.com/v1/things",
    "/apis/example.com/v1",
    "/apis/example.com",
    "/apis/remote.example.com/v1/namespaces/default/things/a",
    "/apis/remote.example.com/v1",
    "/apis/remote.example.com",
    "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com",
];

#[test]
fn nothing_is_missing_while_a_server_starts() {
    let mut server = Server::start(&FLAGS);
    let made = [
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION),
        ("/api/v1/namespaces/default/services", SERVICE),
        ("/apis/apiregistration.k8s.io/v1/apiservices", REMOTE),
        (
            "/apis/example.com/v1/namespaces/default/things",
            r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}"#,
        ),
    ];
    for (path, body) in made {
        server.wait_for("made", || server.post(path, body).is_ok_and(|r| r.status == 201 || r.status == 409));
    }
    let api_service = "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com";
    let uid = |server: &Server| {
        let answer = server.get(api_service).unwrap();
        let object: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        object["metadata"]["uid"].as_str().map(str::to_owned)
    };
    server.wait_for("registered", || uid(&server).is_some());
    let before = uid(&server);
    for _ in 0..RESTARTS {
        server.signal("TERM");
        server.ended();
        let (port, stop) = (server.port, AtomicBool::new(false));
        let heard = std::thread::scope(|scope| {
            let askers: Vec<_> = PATHS.iter().map(|path| scope.spawn(|| ask(port, path, &stop))).collect();
            server.restart(&FLAGS);
            stop.store(true, Ordering::Relaxed);
            askers.into_iter().map(|a| a.join().unwrap()).collect::<Vec<_>>()
        });
        for (path, heard) in PATHS.iter().zip(heard) {
            assert!(!heard.contains_key(&404), "{path}: {heard:?}");
            assert!(!heard.is_empty(), "{path} was never answered");
        }
        assert_eq!(uid(&server), before, "the APIService is the one that it was");
    }
}

/// Codes and how often each came, from the first connection that is taken.
fn ask(port: u16, path: &str, stop: &AtomicBool) -> BTreeMap<u16, usize> {
    let mut heard = BTreeMap::new();
    let mut is_last = false;
    while !is_last {
        is_last = stop.load(Ordering::Relaxed);
        let address = Address::parse(&format!("https://127.0.0.1:{port}")).unwrap();
        let request = Request {
            method: "GET".into(),
            path: path.into(),
            headers: vec![("Authorization".into(), format!("Bearer {TOKEN}"))],
            body: None,
        };
        match Client::new(address).send(&request) {
            Ok(answer) => *heard.entry(answer.status).or_default() += 1,
            // Nobody listens yet.
            Err(_) => std::thread::yield_now(),
        }
    }
    heard
}
