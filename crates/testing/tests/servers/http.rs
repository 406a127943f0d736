//! The test API over HTTP, as other languages use it.

use kubelith_testing::{Controllers, Kubelith};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const API: &str = "/kubelith/v1";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

async fn post(server: &Kubelith, path: &str, body: Value) -> (u16, Value) {
    let answer = server.post(path, &body).await.unwrap();
    (answer.code, answer.body)
}

async fn names(server: &Kubelith) -> Vec<String> {
    let list = server.get(MAPS).await.unwrap().body;
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn start(flags: &[&str]) -> Kubelith {
    let builder = Kubelith::builder().controllers(Controllers::Off);
    flags.iter().fold(builder, |builder, flag| builder.flag(*flag)).start().await.unwrap()
}

#[tokio::test]
async fn it_is_absent_unless_asked_for() {
    let server = start(&["--enable-test-api=false"]).await;
    for path in ["faults", "snapshots", "clock", "fork"] {
        assert_eq!(server.get(&format!("{API}/{path}")).await.unwrap().code, 404, "{path}");
    }
    assert!(server.fault(kubelith_testing::Fault::answer(500)).is_err());
}

#[tokio::test]
async fn snapshots_forks_and_resets() {
    // The embedded store can be copied as well; the copy is in memory.
    for backend in ["memory", "embedded"] {
        let server = start(&[&format!("--storage-backend={backend}")]).await;
        assert_eq!(post(&server, MAPS, map("a")).await.0, 201);
        let (code, snapshot) = post(&server, &format!("{API}/snapshots"), json!({})).await;
        assert_eq!(code, 201, "{snapshot}");
        assert_eq!(post(&server, MAPS, map("b")).await.0, 201);
        let listed = server.get(&format!("{API}/snapshots")).await.unwrap().body;
        assert_eq!(listed["items"], json!([snapshot]));

        let (code, fork) = post(&server, &format!("{API}/fork"), json!({"snapshot": snapshot["id"]})).await;
        assert_eq!(code, 201, "{fork}");
        let there = fork["server"].as_str().unwrap();
        let address = there.strip_prefix("https://").unwrap().to_owned();
        assert!(tokio::net::TcpStream::connect(&address).await.is_ok());
        assert!(fork["kubeconfig"].as_str().unwrap().contains(&format!("server: {there}\n")));
        let path = format!("{API}/forks/{}", fork["id"].as_str().unwrap());
        assert_eq!(server.delete(&path).await.unwrap().code, 200);
        assert_eq!(server.delete(&path).await.unwrap().code, 404);

        let reset = json!({"snapshot": snapshot["id"]});
        assert_eq!(post(&server, &format!("{API}/reset"), reset).await.0, 200);
        assert_eq!(names(&server).await, ["a"], "{backend}");
    }
}

/// Who may fork and is no administrator does not become one by it.
#[tokio::test]
async fn only_administrators_are_given_their_certificate() {
    let server = Kubelith::builder().controllers(Controllers::Off).user("alice", ["devs"]).start().await.unwrap();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "forks"}, "rules": [{"nonResourceURLs": ["/kubelith/*"], "verbs": ["*"]}]});
    assert_eq!(post(&server, &format!("{rbac}/clusterroles"), role).await.0, 201);
    let binding = json!({
        "metadata": {"name": "forks"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "forks"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    });
    assert_eq!(post(&server, &format!("{rbac}/clusterrolebindings"), binding).await.0, 201);
    let alice = server.token_of("alice").unwrap();
    let fork = server.send_as(alice, "POST", &format!("{API}/fork"), "application/json", "{}").await.unwrap();
    assert_eq!((fork.code, &fork.body["kubeconfig"]), (201, &json!("")), "{}", fork.text);
    assert!(fork.body["certificateAuthority"].as_str().unwrap().starts_with("-----BEGIN"));
}

#[tokio::test]
async fn faults_and_the_clock() {
    let server = start(&["--clock=2026-01-31T12:00:00Z"]).await;
    let faults = format!("{API}/faults");
    let fault = json!({"verbs": ["list"], "resource": "configmaps", "times": 2, "answer": {"code": 429}});
    let (code, added) = post(&server, &faults, fault).await;
    assert_eq!((code, &added["hits"]), (201, &json!(0)), "{added}");
    for code in [429, 429, 200] {
        assert_eq!(server.get(MAPS).await.unwrap().code, code);
    }
    let path = format!("{faults}/{}", added["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.unwrap().body["hits"], 2);
    assert_eq!(server.delete(&faults).await.unwrap().code, 200);
    assert_eq!(server.get(&faults).await.unwrap().body, json!({"items": []}));
    let (code, wrong) = post(&server, &faults, json!({"verb": "get"})).await;
    assert_eq!((code, &wrong["message"]), (400, &json!("unknown field \"verb\"")));

    let clock = format!("{API}/clock");
    assert_eq!(server.get(&clock).await.unwrap().body["now"], "2026-01-31T12:00:00Z");
    assert_eq!(post(&server, &clock, json!({"advance": "1h30m"})).await.1["now"], "2026-01-31T13:30:00Z");
    assert_eq!(post(&server, MAPS, map("a")).await.1["metadata"]["creationTimestamp"], "2026-01-31T13:30:00Z");
    assert_eq!(post(&server, &clock, json!({"advance": "soon"})).await.0, 400);
    assert_eq!(post(&server, &format!("{API}/reset"), json!({"snapshot": "no"})).await.0, 404);
    assert_eq!(server.put(&format!("{API}/reset"), &json!({})).await.unwrap().code, 405);
}

#[tokio::test]
async fn a_fault_is_listed_as_it_was_sent() {
    let server = start(&[]).await;
    let faults = format!("{API}/faults");
    for fault in [
        json!({"answer": {"code": 409, "message": "no", "reason": "Conflict"}, "times": 3, "verbs": ["update", "patch"]}),
        json!({"answer": {"code": 429, "retryAfterSeconds": 7}, "skip": 2}),
        json!({"delay": "2s", "namespace": "a", "user": "alice"}),
        json!({"delayEvents": "1m30s", "group": "apps", "resource": "deployments"}),
        json!({"expireWatch": true, "resource": "pods"}),
        json!({"endWatch": true, "skip": 2}),
        json!({"resource": "pods", "staleBy": 5}),
        json!({"answerAfter": {"code": 504}, "subresource": "status"}),
        json!({"failAdmission": "webhook said no", "name": "x"}),
    ] {
        let (code, mut added) = post(&server, &faults, fault.clone()).await;
        assert_eq!(code, 201, "{added}");
        for key in ["id", "seen", "hits"] {
            assert!(added.as_object_mut().unwrap().remove(key).is_some(), "{key}");
        }
        assert_eq!(added, fault);
    }
    let effects =
        "one of answer, answerAfter, delay, delayEvents, expireWatch, endWatch, staleBy and failAdmission is needed";
    for (fault, why) in [
        (json!({}), effects),
        (json!({"delay": "1s", "endWatch": true}), effects),
        (json!({"delay": "x"}), "delay: \"x\" is no duration"),
        (json!({"answer": {"code": 200}}), "answer.code: must be an error, from 400 to 599"),
        (json!([]), "a fault is an object"),
    ] {
        let (code, answer) = post(&server, &faults, fault).await;
        assert_eq!((code, answer["message"].as_str()), (400, Some(why)));
    }
}

/// Two runs that do the same have the same uids and names.
#[tokio::test]
async fn uids_and_names_follow_from_a_seed() {
    let run = async |seed: u64| {
        let server = Kubelith::builder().controllers(Controllers::Off).seed(seed).start().await.unwrap();
        let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}});
        let mut made = Vec::new();
        for object in [map("a"), generated.clone(), generated] {
            let meta = post(&server, MAPS, object).await.1["metadata"].clone();
            made.push((meta["name"].as_str().unwrap().to_owned(), meta["uid"].as_str().unwrap().to_owned()));
        }
        let default = server.get("/api/v1/namespaces/default").await.unwrap().body["metadata"]["uid"].clone();
        (made, default)
    };
    let (first, again, other) = (run(7).await, run(7).await, run(8).await);
    assert_eq!(first, again);
    assert!(first.0[1] != first.0[2] && first.0[0] != other.0[0] && first.1 != other.1);
}

#[tokio::test]
async fn flags_of_tests_need_the_test_api() {
    for (flags, why) in [
        (["--clock=manual", "--enable-test-api=false"], "--clock requires --enable-test-api"),
        (["--clock=noon", ""], "--clock \"noon\" invalid, allowed values: system, manual, a time (RFC 3339)"),
        (["--random-seed=x", ""], "--random-seed \"x\" invalid, must be a number, 0 or more"),
    ] {
        let builder =
            flags.into_iter().filter(|flag| !flag.is_empty()).fold(Kubelith::builder(), |b, flag| b.flag(flag));
        let error = builder.start().await.err().unwrap().to_string();
        assert_eq!(error, why);
    }
}
