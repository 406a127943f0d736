//! Admission plugins with a configuration: where pods may run and what they tolerate, how many events are taken, and who
//! may make one object depend on another.

use super::plugins::{make, merged, pod, send};
use crate::support::Server;
use serde_json::{Value, json};

const CONFIGURATION: &str = r#"
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodNodeSelector
  configuration:
    podNodeSelectorPluginConfig:
      clusterDefaultNodeSelector: zone=a
      strict: zone=a,disk=ssd
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
    kind: Configuration
    whitelist:
    - {key: spot, operator: Exists}
    - {key: node.kubernetes.io/not-ready, operator: Exists}
    - {key: node.kubernetes.io/unreachable, operator: Exists}
    - {key: node.kubernetes.io/memory-pressure, operator: Exists}
    - {key: x.com/gpu, operator: Exists}
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Namespace, qps: 1, burst: 2}
"#;

fn in_namespace(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// The message of a refusal, or nothing.
fn refusal(server: &Server, path: &str, body: &Value) -> (u16, String) {
    let (code, answer) = send(server, None, "POST", path, body);
    (code, if code < 300 { String::new() } else { answer["message"].as_str().unwrap_or_default().to_owned() })
}

#[test]
fn configured_plugins_hold() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("admission.yaml");
    std::fs::write(&file, CONFIGURATION).unwrap();
    let server = Server::start(&[
        "--authorization-mode=AlwaysAllow",
        "--enable-admission-plugins=PodNodeSelector,PodTolerationRestriction,EventRateLimit,ExtendedResourceToleration,NamespaceAutoProvision",
        "--disable-admission-plugins=ServiceAccount",
        &format!("--admission-control-config-file={}", file.display()),
    ]);
    let free = json!({"spec": {"nodeName": null}});
    let plain = |name: &str| merged(pod(name, ""), &free);

    // A namespace that is not there is made, but not for a dry run.
    let (code, _) = send(&server, None, "POST", &format!("{}?dryRun=All", in_namespace("fresh")), &plain("p"));
    assert_eq!(code, 404);
    let made = make(&server, &in_namespace("fresh"), &plain("p"));
    assert_eq!(made["spec"]["nodeSelector"], json!({"zone": "a"}));

    // Selectors of the namespace come first, and what the configuration allows holds.
    let selects = |zone: &str| merged(plain("q"), &json!({"spec": {"nodeSelector": {"zone": zone}}}));
    assert_eq!(
        refusal(&server, &in_namespace("fresh"), &selects("b")),
        (
            403,
            "pods \"q\" is forbidden: pod node label selector conflicts with its namespace node label selector"
                .to_owned()
        )
    );
    let annotated = json!({"metadata": {"name": "own", "annotations": {
        "scheduler.alpha.kubernetes.io/node-selector": "zone=b",
        "scheduler.alpha.kubernetes.io/defaultTolerations": "[{\"key\":\"spot\",\"operator\":\"Exists\"}]",
    }}});
    make(&server, "/api/v1/namespaces", &annotated);
    let made = make(&server, &in_namespace("own"), &selects("b"));
    let tolerations = made["spec"]["tolerations"].as_array().unwrap();
    assert!(tolerations.contains(&json!({"key": "spot", "operator": "Exists"})), "{tolerations:?}");
    make(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "strict"}}));
    let odd = merged(plain("q"), &json!({"spec": {"nodeSelector": {"cpu": "old"}}}));
    assert_eq!(
        refusal(&server, &in_namespace("strict"), &odd),
        (
            403,
            "pods \"q\" is forbidden: pod node label selector labels conflict with its namespace whitelist".to_owned()
        )
    );

    // Tolerations: those of devices are added, others are refused.
    let gpu = json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"x.com/gpu": "1", "cpu": "1"}}}]}});
    let made = make(&server, &in_namespace("fresh"), &merged(plain("gpu"), &gpu));
    let tolerations = made["spec"]["tolerations"].as_array().unwrap();
    let keys: Vec<&str> = tolerations.iter().map(|t| t["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"x.com/gpu") && keys.contains(&"node.kubernetes.io/memory-pressure"), "{keys:?}");
    let all = merged(plain("q"), &json!({"spec": {"tolerations": [{"operator": "Exists"}]}}));
    let (code, message) = refusal(&server, &in_namespace("fresh"), &all);
    assert_eq!(code, 500);
    assert!(message.ends_with("conflict with its cluster whitelist"), "{message}");

    // Events beyond the burst.
    let event = |i: usize| json!({"metadata": {"name": format!("e{i}")}, "involvedObject": {"namespace": "fresh"}});
    let codes: Vec<u16> =
        (0..6).map(|i| send(&server, None, "POST", "/api/v1/namespaces/fresh/events", &event(i)).0).collect();
    assert_eq!(codes[..2], [201, 201]);
    assert!(codes.contains(&429), "{codes:?}");
}

#[test]
fn owners_are_protected() {
    let server = Server::start(&[
        "--authorization-mode=RBAC",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    ]);
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let owner = make(&server, MAPS, &json!({"metadata": {"name": "owner"}}));
    let allow = |name: &str, resource: &str, verbs: &[&str]| {
        let rule = json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
        make(&server, &format!("{rbac}/clusterroles"), &json!({"metadata": {"name": name}, "rules": [rule]}));
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"});
        let binding = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        make(&server, &format!("{rbac}/clusterrolebindings"), &binding);
    };
    allow("maps", "configmaps", &["create", "update", "patch", "get"]);
    let reference = |blocks: bool, kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "owner", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks});
    let map = |name: &str, owners: Value| json!({"metadata": {"name": name, "ownerReferences": owners}});
    let try_it = |method: &str, path: &str, body: &Value| {
        let (code, answer) = send(&server, Some("n1"), method, path, body);
        (code, answer["message"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(try_it("POST", MAPS, &map("a", json!([reference(false, "ConfigMap")]))).0, 201);
    let (code, message) = try_it("POST", MAPS, &map("b", json!([reference(true, "ConfigMap")])));
    let why = "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: ";
    assert_eq!((code, message.as_str()), (403, format!("{why}, <nil>").as_str()));
    let (code, message) = try_it("POST", MAPS, &map("b", json!([reference(true, "Odd")])));
    assert_eq!(code, 403);
    assert!(
        message.ends_with("for APIVersion v1 Kind Odd: no matches for kind \"Odd\" in version \"v1\""),
        "{message}"
    );
    // Who cannot delete the object cannot have the garbage collector do it.
    let (code, message) = try_it("PATCH", &format!("{MAPS}/a"), &map("a", json!([])));
    assert_eq!(code, 403);
    assert!(message.contains("cannot set an ownerRef on a resource you can't delete: "), "{message}");
    allow("more", "configmaps/finalizers", &["update"]);
    assert_eq!(try_it("POST", MAPS, &map("b", json!([reference(true, "ConfigMap")]))).0, 201);
    allow("most", "configmaps", &["delete"]);
    assert_eq!(try_it("PATCH", &format!("{MAPS}/a"), &map("a", json!([]))).0, 200);
}

#[test]
fn groups_of_pods_belong_to_workloads() {
    let server = Server::start(&[
        "--authorization-mode=AlwaysAllow",
        "--feature-gates=GenericWorkload=true",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    ]);
    let api = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default";
    let group = |name: &str, workload: &str, template: &str| {
        let reference = json!({"workload": {"workloadName": workload, "podGroupTemplateName": template}});
        json!({"metadata": {"name": name}, "spec": {
            "podGroupTemplateRef": reference, "schedulingPolicy": {"gang": {"minCount": 2}}}})
    };
    let groups = format!("{api}/podgroups");
    assert_eq!(
        refusal(&server, &groups, &group("g", "w", "t")),
        (403, "podgroups.scheduling.k8s.io \"g\" is forbidden: PodGroup rejected: Workload \"w\" not found".to_owned())
    );
    let templates = json!([{"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}]);
    make(
        &server,
        &format!("{api}/workloads"),
        &json!({"metadata": {"name": "w"}, "spec": {"podGroupTemplates": templates}}),
    );
    let (code, message) = refusal(&server, &groups, &group("g", "w", "odd"));
    assert_eq!(code, 403);
    assert!(message.ends_with("PodGroup rejected: PodGroupTemplate \"odd\" not found in Workload \"w\""), "{message}");
    let made = make(&server, &groups, &group("g", "w", "t"));
    assert_eq!(made["metadata"]["finalizers"], json!(["scheduling.k8s.io/podgroup-protection"]));
}
