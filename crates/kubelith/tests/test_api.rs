//! The test API of the program, as other languages use it.

mod support;

use kubelith_conformance::http::{Address, Client, Request};
use serde_json::{Value, json};
use support::{Server, TOKEN};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const API: &str = "/kubelith/v1";

fn send(url: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let answer = Client::new(Address::parse(url).unwrap()).send(&Request {
        method: method.into(),
        path: path.into(),
        headers: vec![header("Authorization", &format!("Bearer {TOKEN}")), header("Content-Type", "application/json")],
        body: body.map(|body| body.to_string().into()),
    });
    let answer = answer.unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn url(server: &Server) -> String {
    format!("https://127.0.0.1:{}", server.port)
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn names(url: &str) -> Vec<String> {
    let list = send(url, "GET", MAPS, None).1;
    let names =
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn it_is_absent_unless_asked_for() {
    let server = Server::start(&[]);
    for path in ["/kubelith/v1/faults", "/kubelith/v1/snapshots", "/kubelith/v1/clock"] {
        assert_eq!(send(&url(&server), "GET", path, None).0, 404, "{path}");
    }
}

#[test]
fn snapshots_forks_and_resets() {
    let server = Server::start(&["--enable-test-api"]);
    let url = url(&server);
    assert_eq!(send(&url, "POST", MAPS, Some(&map("a"))).0, 201);
    let (code, snapshot) = send(&url, "POST", &format!("{API}/snapshots"), None);
    assert_eq!(code, 201, "{snapshot}");
    assert_eq!(send(&url, "POST", MAPS, Some(&map("b"))).0, 201);

    let (code, fork) = send(&url, "POST", &format!("{API}/fork"), Some(&json!({"snapshot": snapshot["id"]})));
    assert_eq!(code, 201, "{fork}");
    let there = fork["server"].as_str().unwrap();
    assert_ne!(there, url);
    assert!(fork["kubeconfig"].as_str().unwrap().contains(there));
    assert_eq!(names(there), ["a"]);
    assert_eq!(send(there, "POST", MAPS, Some(&map("c"))).0, 201);
    assert_eq!(
        (names(there), names(&url)),
        (vec!["a".to_owned(), "c".to_owned()], vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(send(&url, "GET", &format!("{API}/forks"), None).1["items"][0]["server"], fork["server"]);
    let path = format!("{API}/forks/{}", fork["id"].as_str().unwrap());
    assert_eq!((send(&url, "DELETE", &path, None).0, send(&url, "DELETE", &path, None).0), (200, 404));

    assert_eq!(send(&url, "POST", &format!("{API}/reset"), Some(&json!({"snapshot": snapshot["id"]}))).0, 200);
    assert_eq!(names(&url), ["a"]);
    assert_eq!(send(&url, "POST", &format!("{API}/reset"), Some(&json!({"snapshot": "no"}))).0, 404);
    assert_eq!(send(&url, "PUT", &format!("{API}/reset"), None).0, 405);
}

/// The embedded store can be copied as well; the copy is in memory.
#[test]
fn an_embedded_store_is_forked() {
    let server = Server::start(&["--enable-test-api", "--storage-backend=embedded"]);
    let url = url(&server);
    assert_eq!(send(&url, "POST", MAPS, Some(&map("a"))).0, 201);
    let (code, snapshot) = send(&url, "POST", &format!("{API}/snapshots"), None);
    assert_eq!(code, 201, "{snapshot}");
    assert_eq!(send(&url, "POST", MAPS, Some(&map("b"))).0, 201);
    let (code, fork) = send(&url, "POST", &format!("{API}/fork"), None);
    assert_eq!(code, 201, "{fork}");
    assert_eq!(names(fork["server"].as_str().unwrap()), ["a", "b"]);
    assert_eq!(send(&url, "POST", &format!("{API}/reset"), Some(&json!({"snapshot": snapshot["id"]}))).0, 200);
    assert_eq!(names(&url), ["a"]);
}

#[test]
fn an_etcd_is_not_copied() {
    let etcd = support::etcd();
    let server = Server::start(&[&format!("--etcd-servers={}", etcd.url), "--enable-test-api"]);
    for path in ["snapshots", "fork"] {
        let (code, answer) = send(&url(&server), "POST", &format!("{API}/{path}"), None);
        assert_eq!(code, 400, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("only stores in memory and embedded ones"), "{answer}");
    }
    // Faults need no store.
    let fault = json!({"resource": "configmaps", "times": 1, "answer": {"code": 503}});
    assert_eq!(send(&url(&server), "POST", &format!("{API}/faults"), Some(&fault)).0, 201);
    assert_eq!(send(&url(&server), "GET", MAPS, None).0, 503);
}

#[test]
fn faults_and_the_clock() {
    let server = Server::start(&["--enable-test-api", "--clock=2026-01-31T12:00:00Z"]);
    let url = url(&server);
    let fault = json!({"verbs": ["list"], "resource": "configmaps", "times": 2, "answer": {"code": 429}});
    let (code, added) = send(&url, "POST", &format!("{API}/faults"), Some(&fault));
    assert_eq!((code, &added["hits"]), (201, &json!(0)), "{added}");
    assert_eq!([(); 3].map(|()| send(&url, "GET", MAPS, None).0), [429, 429, 200]);
    let path = format!("{API}/faults/{}", added["id"].as_str().unwrap());
    assert_eq!(send(&url, "GET", &path, None).1["hits"], 2);
    assert_eq!(send(&url, "DELETE", &format!("{API}/faults"), None).0, 200);
    assert_eq!(send(&url, "GET", &format!("{API}/faults"), None).1, json!({"items": []}));
    let (code, wrong) = send(&url, "POST", &format!("{API}/faults"), Some(&json!({"verb": "get"})));
    assert_eq!((code, &wrong["message"]), (400, &json!("unknown field \"verb\"")));

    let clock = format!("{API}/clock");
    assert_eq!(send(&url, "GET", &clock, None).1["now"], "2026-01-31T12:00:00Z");
    assert_eq!(send(&url, "POST", &clock, Some(&json!({"advance": "1h30m"}))).1["now"], "2026-01-31T13:30:00Z");
    let made = send(&url, "POST", MAPS, Some(&map("a"))).1;
    assert_eq!(made["metadata"]["creationTimestamp"], "2026-01-31T13:30:00Z");
    assert_eq!(send(&url, "POST", &clock, Some(&json!({"advance": "soon"}))).0, 400);
}

#[test]
fn a_clock_that_goes_by_itself_is_not_turned() {
    let server = Server::start(&["--enable-test-api"]);
    let (code, answer) = send(&url(&server), "POST", &format!("{API}/clock"), Some(&json!({"advance": "1h"})));
    assert_eq!(code, 400, "{answer}");
}
