//! Policies of the real program: from when on they count, what they judge, and what is counted of them.

use super::{CONFIG_MAPS, CONFIGURATIONS};
use crate::support::Server;
use serde_json::{Value, json};

const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

pub fn policy(resources: &[&str], spec: Value) -> Value {
    let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": resources});
    let mut all = json!({"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    json!({"metadata": {"name": "p"}, "spec": all})
}

fn make(server: &Server, plural: &str, object: &Value) {
    let made = server.post(&format!("{CONFIGURATIONS}/{plural}"), &object.to_string()).unwrap();
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
}

fn bind(server: &Server, actions: &[&str]) {
    make(
        server,
        BINDINGS,
        &json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": actions}}),
    );
}

fn unmake(server: &Server) {
    for path in [format!("{BINDINGS}/b"), format!("{POLICIES}/p")] {
        assert_eq!(server.delete(&format!("{CONFIGURATIONS}/{path}")).unwrap().status, 200);
    }
}

/// Tries to create a config map, and answers the code and the message.
pub fn create(server: &Server) -> (u16, String) {
    let body = json!({"metadata": {"name": "m"}}).to_string();
    let answer = server.post(&format!("{CONFIG_MAPS}?dryRun=All"), &body).unwrap();
    let value: Value = serde_json::from_slice(&answer.body).unwrap();
    (answer.status, value["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_policy_counts_from_the_answer_on() {
    let server = Server::start(&[]);
    for round in 0..10 {
        make(&server, POLICIES, &policy(&["configmaps"], json!({"validations": [{"expression": "false"}]})));
        assert_eq!(create(&server).0, 201, "round {round}: nothing binds it");
        bind(&server, &["Deny"]);
        assert_eq!(create(&server).0, 422, "round {round}");
        unmake(&server);
        assert_eq!(create(&server).0, 201, "round {round}");
    }
}

#[test]
fn variables_cost_where_they_are_reached() {
    let server = Server::start(&[]);
    // Costs more than the whole policy may.
    let dear = "[0,1,2,3,4,5,6,7,8,9].map(a, [0,1,2,3,4,5,6,7,8,9].map(b, [0,1,2,3,4,5,6,7,8,9].map(c, \
                [0,1,2,3,4,5,6,7,8,9].map(d, [0,1,2,3,4,5,6,7,8,9].map(e, [0,1,2,3,4,5,6,7,8,9].map(f, a+b+c+d+e+f)))))) \
                .size()";
    let spec = |validation: &str, variable: &str| {
        json!({
            "variables": [{"name": "dear", "expression": variable}, {"name": "cheap", "expression": "1"}],
            "validations": [{"expression": validation}],
        })
    };
    for (validation, passes) in [
        ("variables.cheap == 1 || variables.dear == 10", true),
        ("variables.cheap == 1 ? true : variables.dear == 10", true),
        ("variables.dear == 10", false),
    ] {
        make(&server, POLICIES, &policy(&["configmaps"], spec(validation, dear)));
        bind(&server, &["Deny"]);
        let (code, message) = create(&server);
        assert_eq!(code == 201, passes, "{validation}: {message}");
        unmake(&server);
    }
}

#[test]
fn policies_judge_webhooks_and_no_reviews() {
    let server = Server::start(&[]);
    make(&server, POLICIES, &policy(&["*"], json!({"validations": [{"expression": "false"}]})));
    bind(&server, &["Deny"]);
    let post = |path: &str, body: Value| server.post(path, &body.to_string()).unwrap().status;
    assert_eq!(post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})), 201);
    let asked = json!({"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}});
    assert_eq!(post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked), 201);
    let hooks = json!({"metadata": {"name": "h"}});
    assert_eq!(post(&format!("{CONFIGURATIONS}/validatingwebhookconfigurations"), hooks), 422);
    unmake(&server);
}

#[test]
fn what_policies_do_is_counted() {
    let server = Server::start(&[]);
    let spec = json!({"validations": [{"expression": "false"}, {"expression": "object.data.gone == 'x'"}]});
    make(&server, POLICIES, &policy(&["configmaps"], spec));
    bind(&server, &["Warn", "Audit"]);
    assert_eq!(create(&server).0, 201);
    unmake(&server);
    let mut ignoring = policy(&["configmaps"], json!({"validations": [{"expression": "object.data.gone == 'x'"}]}));
    ignoring["spec"]["failurePolicy"] = "Ignore".into();
    make(&server, POLICIES, &ignoring);
    bind(&server, &["Deny"]);
    assert_eq!(create(&server).0, 201);
    unmake(&server);
    let mutation = json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
            "expression": "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
        }}],
    });
    make(&server, "mutatingadmissionpolicies", &policy(&["configmaps"], mutation));
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    make(&server, "mutatingadmissionpolicybindings", &binding);
    assert_eq!(create(&server).0, 201);
    let metrics = server.get("/metrics").unwrap();
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    let validating = "apiserver_validating_admission_policy_check";
    for (action, count) in [("warn", 2), ("audit", 2), ("allow", 1)] {
        let labels = format!(
            "{{enforcement_action=\"{action}\",error_type=\"invalid_error\",policy=\"p\",policy_binding=\"b\"}} {count}"
        );
        for line in [format!("{validating}_total{labels}"), format!("{validating}_duration_seconds_count{labels}")] {
            assert!(metrics.contains(&line), "{line}");
        }
    }
    let mutating = "apiserver_mutating_admission_policy_check";
    let labels = "{error_type=\"no_error\",policy=\"p\",policy_binding=\"b\"} 1";
    for line in [format!("{mutating}_total{labels}"), format!("{mutating}_duration_seconds_count{labels}")] {
        assert!(metrics.contains(&line), "{line}");
    }
}
