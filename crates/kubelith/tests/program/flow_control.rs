//! Flow control of the real program: what is stored holds at once, and flow schemas say whether their level exists.

use crate::support::{Server, TOKEN, client};
use kubelith_conformance::http::{Address, Client, Request, Response};
use serde_json::{Value, json};

const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_default()
}

/// Sends as the administrator.
fn send(server: &Server, method: &str, path: &str, body: &Value) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = client::Connection::open(server.address(), client::Protocol::Http1).await.unwrap();
        connection.send(method, path, &body.to_string()).await.unwrap().status
    })
}

#[test]
fn flow_schemas_say_whether_their_level_exists() {
    let server = Server::start(&[]);
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "mine"},
        "spec": {"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 50, "rules": []},
    });
    assert_eq!(send(&server, "POST", &format!("{FLOW_CONTROL}/flowschemas"), &schema), 201);
    let dangling = || {
        let schema = json_of(&server.get(&format!("{FLOW_CONTROL}/flowschemas/mine")).unwrap());
        let condition = &schema["status"]["conditions"][0];
        (condition["status"].clone(), condition["reason"].clone(), condition["message"].clone())
    };
    let message = r#"This FlowSchema references the PriorityLevelConfiguration object named "mine""#;
    let missing = (json!("True"), json!("NotFound"), json!(format!("{message} but there is no such object")));
    server.wait_for("dangling", || dangling() == missing);
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "mine"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 7, "limitResponse": {"type": "Reject"}}},
    });
    assert_eq!(send(&server, "POST", &format!("{FLOW_CONTROL}/prioritylevelconfigurations"), &level), 201);
    let found = (json!("False"), json!("Found"), json!(format!("{message} and it exists")));
    server.wait_for("found", || dangling() == found);
    // The level is there: it has seats, and shows in the dumps.
    let metrics = || String::from_utf8(server.get("/metrics").unwrap().body.to_vec()).unwrap();
    server.wait_for("seats", || {
        metrics().contains(r#"apiserver_flowcontrol_nominal_limit_seats{priority_level="mine"}"#)
    });
    let dump = server.get("/debug/api_priority_and_fairness/dump_priority_levels").unwrap();
    assert!(String::from_utf8_lossy(&dump.body).lines().any(|line| line.starts_with("mine,")));
    assert_eq!(send(&server, "DELETE", &format!("{FLOW_CONTROL}/prioritylevelconfigurations/mine"), &json!({})), 200);
    server.wait_for("dangling again", || dangling() == missing);
}

#[test]
fn a_bad_service_quality_class_is_told_by_an_event() {
    let server = Server::start(&["--enable-service-quality"]);
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "fast", "labels": {"kubelith.dev/service-quality": ""}},
        "data": {"subjects": "user a", "requests-per-second": "quick"},
    });
    assert_eq!(send(&server, "POST", "/api/v1/namespaces/kube-system/configmaps", &config_map), 201);
    let event = || {
        let path = "/api/v1/namespaces/kube-system/events?fieldSelector=reason=InvalidServiceQuality";
        json_of(&server.get(path).unwrap())["items"][0].clone()
    };
    server.wait_for("an event", || event()["involvedObject"]["name"] == "fast");
    assert!(event()["message"].as_str().unwrap().starts_with("This class is not in force: requests-per-second: "));
    let metrics = || String::from_utf8(server.get("/metrics").unwrap().body.to_vec()).unwrap();
    assert!(metrics().contains(r#"kubelith_service_quality_class_valid{class="fast"} 0"#));
    let mut good = config_map;
    good["data"]["requests-per-second"] = json!("5");
    assert_eq!(send(&server, "PUT", "/api/v1/namespaces/kube-system/configmaps/fast", &good), 200);
    server.wait_for("in force", || metrics().contains(r#"kubelith_service_quality_class_valid{class="fast"} 1"#));
}

/// The memory of the process that no file backs.
fn anonymous(server: &Server) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Somebody fills the memory. They are refused before it is full; who keeps the cluster together is served.
#[test]
fn a_memory_budget_is_kept() {
    const BUDGET: u64 = 48 << 20;
    const OBJECT: usize = 400_000;
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    let users = format!("{TOKEN},admin,u,\"system:masters\"\nfiller,filler,f,fillers\n");
    std::fs::write(&tokens, users).unwrap();
    let server =
        Server::start(&[&format!("--memory-budget={BUDGET}"), &format!("--token-auth-file={}", tokens.display())]);
    let binding = json!({
        "metadata": {"name": "fillers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "fillers"}],
    });
    assert_eq!(send(&server, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding), 201);
    let address = Address::parse(&format!("https://127.0.0.1:{}", server.port)).unwrap();
    let mut filler = Client::new(address);
    let mut ask = |method: &str, path: &str, body: &Value| {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![header("Authorization", "Bearer filler"), header("Content-Type", "application/json")];
        let body = (*body != Value::Null).then(|| body.to_string().into_bytes());
        filler.send(&Request { method: method.into(), path: path.into(), headers, body }).unwrap()
    };
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let most = 2 * BUDGET as usize / OBJECT;
    let refused = (0..most).find_map(|i| {
        let object = json!({"metadata": {"name": format!("c{i}")}, "data": {"k": "x".repeat(OBJECT)}});
        let answer = ask("POST", config_maps, &object);
        assert!(matches!(answer.status, 201 | 429), "{}", answer.status);
        (answer.status == 429).then_some(answer)
    });
    let refused = refused.expect("nobody said that it is enough");
    assert!(refused.header("Retry-After").is_some());
    assert!(anonymous(&server) < BUDGET, "{}", anonymous(&server));
    // Nor are lists; but leases and administrators are served, and deletions make room again.
    assert_eq!(ask("GET", config_maps, &Value::Null).status, 429);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    assert_eq!(ask("POST", leases, &json!({"metadata": {"name": "leader"}})).status, 201);
    assert_eq!(server.get(&format!("{config_maps}/c0")).unwrap().status, 200);
    assert_eq!(server.get("/readyz").unwrap().status, 200);
    assert_eq!(ask("DELETE", config_maps, &Value::Null).status, 200);
}
