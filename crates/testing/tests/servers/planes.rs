//! Servers in a process: many, forked, put back, gone.

use crate::support::until;
use kubelith_testing::{Controllers, Fault, Kubelith};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start() -> Kubelith {
    Kubelith::builder().controllers(Controllers::Off).start().await.unwrap()
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

async fn create(server: &Kubelith, name: &str, value: &str) -> Value {
    let answer = server.post(MAPS, &map(name, value)).await.unwrap();
    assert_eq!(answer.code, 201, "{}", answer.text);
    answer.body
}

async fn names(server: &Kubelith) -> Vec<String> {
    let listed = server.get(MAPS).await.unwrap().body;
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    let all = listed["items"].as_array().unwrap().iter().map(name);
    all.filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test]
async fn a_server_answers() {
    let server = Kubelith::start().await.unwrap();
    assert_eq!(server.get("/version").await.unwrap().body["minor"], "36");
    assert_eq!(server.get("/readyz").await.unwrap().text, "ok");
    create(&server, "a", "1").await;
    assert_eq!(server.post(MAPS, &map("a", "1")).await.unwrap().code, 409);
}

#[tokio::test]
async fn a_server_stops_in_order() {
    let server = start().await;
    create(&server, "a", "1").await;
    server.stop().await.unwrap();
}

/// What a server makes at its start is among its objects already, as far as nobody took it away.
#[tokio::test]
async fn a_fork_makes_nothing_by_itself() {
    const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:basic-user";
    const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let server = start().await;
    // Some of it is made when the server is ready.
    until("all of it is made", || async {
        let schemas = server.get(SCHEMAS).await.unwrap().body["items"].as_array().unwrap().clone();
        let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
        schemas.iter().all(|schema| schema["status"]["conditions"].is_array())
            && server.get(slice).await.unwrap().code == 200
    })
    .await;
    assert_eq!(server.delete(ROLE).await.unwrap().code, 200);
    let snapshot = server.snapshot().await.unwrap();
    let fork = server.fork_of(&snapshot).await.unwrap();
    fork.ready().await.unwrap();
    assert_eq!(fork.get(ROLE).await.unwrap().code, 404);
    assert_eq!(fork.snapshot().await.unwrap().revision(), snapshot.revision());
}

/// None of them knows of the others.
#[tokio::test]
async fn ten_servers_live_in_one_process() {
    let mut servers = Vec::new();
    for i in 0..10 {
        let server = start().await;
        create(&server, &format!("of-{i}"), "x").await;
        servers.push(server);
    }
    for (i, server) in servers.iter().enumerate() {
        assert_eq!(names(server).await, [format!("of-{i}")]);
    }
}

/// What one server may use of CEL is nothing to another.
#[tokio::test]
async fn servers_of_different_releases_live_in_one_process() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ones.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "ones", "kind": "One"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"list": {
                    "type": "array", "maxItems": 10, "items": {"type": "integer"},
                    "x-kubernetes-validations": [{"rule": "lists.range(3).size() == 3"}]
                }}
            }}}],
        },
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]},
            "validations": [{"expression": "lists.range(3).size() == 3"}],
        },
    });
    // There are ranges since 1.34.
    let mut servers = Vec::new();
    for (flag, minor, code) in [
        ("--emulated-version=1.36", "36", 201),
        ("--emulated-version=1.34", "34", 422),
        ("--min-compatibility-version=1.33", "36", 422),
        ("--min-compatibility-version=1.34", "36", 201),
    ] {
        let server = Kubelith::builder().controllers(Controllers::Off).flag(flag).start().await.unwrap();
        assert_eq!(server.get("/version").await.unwrap().body["emulationMinor"], minor, "{flag}");
        servers.push((server, flag, code));
    }
    for (server, flag, code) in &servers {
        for (path, object) in [
            ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition),
            ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", &policy),
        ] {
            let made = server.post(path, object).await.unwrap();
            assert_eq!(made.code, *code, "{flag} {path}: {}", made.text);
        }
    }
    let fork = servers[1].0.fork().await.unwrap();
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    assert_eq!(fork.post(path, &policy).await.unwrap().code, 422);
}

#[tokio::test]
async fn users_may_do_what_roles_let_them() {
    let server = Kubelith::builder().user("alice", ["devs", "night shift"]).start().await.unwrap();
    let token = server.token_of("alice").unwrap();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = server.send_as(token, "POST", path, "application/json", review).await.unwrap();
    assert_eq!(who.body["status"]["userInfo"]["username"], "alice");
    let groups = who.body["status"]["userInfo"]["groups"].clone();
    assert!(groups.as_array().unwrap().contains(&json!("devs")), "{groups}");
    let list = server.send_as(token, "GET", MAPS, "", "").await.unwrap();
    assert_eq!((list.code, &list.body["reason"]), (403, &json!("Forbidden")));
    // The test API is for administrators.
    let faults = server.send_as(token, "GET", "/kubelith/v1/faults", "", "").await.unwrap();
    assert_eq!(faults.code, 403, "{}", faults.text);
    assert_eq!(server.send_as("nobody", "GET", MAPS, "", "").await.unwrap().code, 401);
    assert!(server.token_of("bob").is_none());
}

#[tokio::test]
async fn definitions_are_there_from_the_start() {
    let definition = |plural: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.example.com}}\n\
             spec:\n  group: example.com\n  scope: Namespaced\n  names: {{plural: {plural}, kind: K{plural}}}\n  versions:\n  \
             - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, \
             x-kubernetes-preserve-unknown-fields: true}}}}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let both = format!("# two\n---\n{}---\n{}", definition("ones"), definition("twos"));
    std::fs::write(folder.path().join("a.yaml"), both).unwrap();
    std::fs::write(folder.path().join("README"), "no definition").unwrap();
    let server = Kubelith::builder().definitions(folder.path()).definition(definition("threes")).start().await.unwrap();
    for plural in ["ones", "twos", "threes"] {
        let path = format!("/apis/example.com/v1/namespaces/default/{plural}");
        let object = json!({"apiVersion": "example.com/v1", "kind": format!("K{plural}"), "metadata": {"name": "x"}});
        let made = server.post(&path, &object).await.unwrap();
        assert_eq!(made.code, 201, "{}", made.text);
    }
    let fork = server.fork().await.unwrap();
    assert_eq!(fork.get("/apis/example.com/v1/namespaces/default/ones/x").await.unwrap().code, 200);
    let wrong = Kubelith::builder().definition("kind: Nothing").start().await.err().unwrap();
    assert!(wrong.to_string().starts_with("a definition was refused:"), "{wrong}");
}

#[tokio::test]
async fn a_fork_has_the_same_objects_and_goes_its_own_way() {
    let server = start().await;
    let before = create(&server, "before", "1").await;
    let fork = server.fork().await.unwrap();
    let same = fork.get(&format!("{MAPS}/before")).await.unwrap().body;
    assert_eq!(same, before, "uid, resourceVersion and all");
    create(&fork, "fork", "1").await;
    create(&server, "server", "1").await;
    let replaced = fork.put(&format!("{MAPS}/before"), &map("before", "2")).await.unwrap();
    assert_eq!(replaced.code, 200);
    assert_eq!(names(&fork).await, ["before", "fork"]);
    assert_eq!(names(&server).await, ["before", "server"]);
    assert_eq!(server.get(&format!("{MAPS}/before")).await.unwrap().body, before);
    // A fork of a fork, and one that outlives what it was forked from.
    let second = fork.fork().await.unwrap();
    drop(server);
    drop(fork);
    assert_eq!(names(&second).await, ["before", "fork"]);
    second.ready().await.unwrap();
    create(&second, "second", "1").await;
    assert_eq!(names(&second).await, ["before", "fork", "second"]);
}

/// A watch that began before the fork can go on in the fork.
#[tokio::test]
async fn a_fork_knows_the_past() {
    let server = start().await;
    let first = create(&server, "a", "1").await;
    create(&server, "b", "1").await;
    let fork = server.fork().await.unwrap();
    create(&server, "not-in-the-fork", "1").await;
    create(&fork, "c", "1").await;
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let events = fork.get(&format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}")).await.unwrap();
    let seen: Vec<Value> = events.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<&str> = seen.iter().map(|event| event["object"]["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(seen, ["b", "c"]);
}

#[tokio::test]
async fn tokens_of_one_fork_are_not_believed_by_another() {
    let server = Kubelith::builder().start().await.unwrap();
    until("the account is there", || async {
        server.get("/api/v1/namespaces/default/serviceaccounts/default").await.unwrap().code == 200
    })
    .await;
    let token = async |server: &Kubelith| {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
        let answer = server.post(path, &request).await.unwrap();
        answer.body["status"]["token"].as_str().unwrap_or_else(|| panic!("{}", answer.text)).to_owned()
    };
    let works = async |server: &Kubelith, token: &str| {
        let answer = server.send_as(token, "GET", "/version", "", "").await.unwrap();
        answer.code == 200
    };
    let older = token(&server).await;
    let (one, two) = (server.fork().await.unwrap(), server.fork().await.unwrap());
    let newer = token(&one).await;
    assert!(works(&server, &older).await && works(&one, &older).await && works(&two, &older).await);
    assert!(works(&one, &newer).await);
    assert!(!works(&two, &newer).await && !works(&server, &newer).await);
}

#[tokio::test]
async fn a_reset_puts_everything_back() {
    let server = start().await;
    create(&server, "kept", "1").await;
    create(&server, "changed", "1").await;
    create(&server, "deleted", "1").await;
    let then = server.snapshot().await.unwrap();
    create(&server, "added", "1").await;
    assert_eq!(server.put(&format!("{MAPS}/changed"), &map("changed", "2")).await.unwrap().code, 200);
    assert_eq!(server.delete(&format!("{MAPS}/deleted")).await.unwrap().code, 200);
    let version = server.get(MAPS).await.unwrap().body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    server.reset(&then).await.unwrap();
    assert_eq!(names(&server).await, ["changed", "deleted", "kept"]);
    assert_eq!(server.get(&format!("{MAPS}/changed")).await.unwrap().body["data"]["value"], "1");
    // Whoever watches is told.
    let events = server.get(&format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}")).await.unwrap();
    let seen: Vec<Value> = events.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let event =
        |e: &Value| format!("{} {}", e["type"].as_str().unwrap(), e["object"]["metadata"]["name"].as_str().unwrap());
    let mut seen: Vec<String> = seen.iter().map(event).collect();
    seen.sort();
    assert_eq!(seen, ["ADDED deleted", "DELETED added", "MODIFIED changed"]);
    // A fork of what was, whatever became of it.
    create(&server, "again", "1").await;
    assert_eq!(names(&server.fork_of(&then).await.unwrap()).await, ["changed", "deleted", "kept"]);
}

/// How far the store is.
async fn revision(server: &Kubelith) -> u64 {
    let list = server.get(MAPS).await.unwrap().body;
    list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn faults_are_made_counted_and_cleared() {
    let server =
        Kubelith::builder().controllers(Controllers::Off).user("alice", ["system:masters"]).start().await.unwrap();
    let alice = server.token_of("alice").unwrap().to_owned();
    create(&server, "a", "1").await;
    let path = format!("{MAPS}/a");
    let conflict =
        server.fault(Fault::answer(409).verbs(["update"]).resource("configmaps").name("a").times(2)).unwrap();
    for code in [409, 409, 200] {
        let answer = server.put(&path, &map("a", "2")).await.unwrap();
        assert_eq!(answer.code, code);
        if code == 409 {
            let message = answer.body["message"].as_str().unwrap();
            assert!(
                message.starts_with("Operation cannot be fulfilled on configmaps \"a\": the object has been modified")
            );
        }
    }
    assert_eq!(conflict.hits(), 2);
    // Of one user alone.
    server.fault(Fault::answer(500).user("alice").message("not you")).unwrap();
    assert_eq!(server.get(&path).await.unwrap().code, 200);
    let refused = server.send_as(&alice, "GET", &path, "", "").await.unwrap();
    assert_eq!((refused.code, &refused.body["message"]), (500, &json!("not you")));
    server.clear_faults();
    assert_eq!(server.send_as(&alice, "GET", &path, "", "").await.unwrap().code, 200);
    assert!(server.faults().is_empty());
    let before = revision(&server).await;
    // Done, though the client hears otherwise.
    server.fault(Fault::answer_after(504).verbs(["create"]).times(1)).unwrap();
    assert_eq!(server.post(MAPS, &map("done", "1")).await.unwrap().code, 504);
    assert_eq!(names(&server).await, ["a", "done"]);
    // Not done, as a webhook that fails leaves it.
    server.fault(Fault::fail_admission("the webhook is down").times(1)).unwrap();
    let failed = server.post(MAPS, &map("refused", "1")).await.unwrap();
    assert_eq!((failed.code, &failed.body["reason"]), (500, &json!("InternalError")));
    assert_eq!(failed.body["message"], "Internal error occurred: the webhook is down");
    assert_eq!(names(&server).await, ["a", "done"]);
    // A list from before the last write. The server writes as well, so it is told how far back that is, and one more.
    let since = revision(&server).await - before;
    server.fault(Fault::stale_list(since + 1).resource("configmaps").times(1)).unwrap();
    assert_eq!(names(&server).await, ["a"]);
    assert_eq!(names(&server).await, ["a", "done"]);
    let slow = server.fault(Fault::delay(Duration::from_millis(300)).verbs(["get"]).times(1)).unwrap();
    let begun = Instant::now();
    assert_eq!(server.get(&path).await.unwrap().code, 200);
    assert!(begun.elapsed() >= Duration::from_millis(300) && slow.hits() == 1);
    // Faults of a server are not those of its forks.
    server.fault(Fault::answer(503)).unwrap();
    assert_eq!(server.fork().await.unwrap().get(&path).await.unwrap().code, 200);
}

#[tokio::test]
async fn watches_are_ended_expired_and_delayed() {
    let server = start().await;
    create(&server, "a", "1").await;
    let open = format!("{MAPS}?watch=true&timeoutSeconds=30");
    server.fault(Fault::expire_watch().resource("configmaps").times(1)).unwrap();
    let expired = server.get(&open).await.unwrap();
    assert_eq!((expired.code, &expired.body["type"]), (200, &json!("ERROR")), "{}", expired.text);
    assert_eq!((&expired.body["object"]["code"], &expired.body["object"]["reason"]), (&json!(410), &json!("Expired")));
    // One that is open ends at once.
    let (ended, ()) = tokio::join!(server.get(&open), async {
        until("the watch has begun", || async { server.get("/metrics").await.unwrap().text.contains(WATCHING) }).await;
        let end = server.fault(Fault::end_watch().resource("configmaps").times(1)).unwrap();
        assert_eq!(end.hits(), 1);
    });
    assert_eq!(ended.unwrap().code, 200);
    server.fault(Fault::delay_events(Duration::from_millis(300)).times(1)).unwrap();
    let begun = Instant::now();
    let events = server.get(&format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion=0")).await.unwrap();
    assert!(events.text.contains("\"ADDED\"") && begun.elapsed() >= Duration::from_millis(300));
}

const WATCHING: &str = r#"apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"} 1"#;
