use super::*;
use crate::json;
use crate::traits::{Requirement, Selector};
use kubelith_meta::Value;

fn value(json: &str) -> Value {
    json::parse(json.as_bytes()).unwrap()
}

fn pod() -> Value {
    let json = r#"{"metadata":{"namespace":"ns","name":"web"},"spec":{"nodeName":"n1","serviceAccountName":"sa",
        "imagePullSecrets":[{"name":"pull"},{"name":""}],
        "initContainers":[{"envFrom":[{"secretRef":{"name":"init-secret"}}]}],
        "containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"env-secret"}}},{"value":"x"},
            {"valueFrom":{"configMapKeyRef":{"name":"env-config"}}}],"envFrom":[{"configMapRef":{"name":"all-config"}}]}],
        "ephemeralContainers":[{"envFrom":[{"configMapRef":{"name":"debug-config"}}]}],
        "volumes":[{"name":"a","secret":{"secretName":"vol-secret"}},{"name":"b","configMap":{"name":"vol-config"}},
            {"name":"c","projected":{"sources":[{"secret":{"name":"proj-secret"}},{"configMap":{"name":"proj-config"}}]}},
            {"name":"d","persistentVolumeClaim":{"claimName":"claim"}},{"name":"e","ephemeral":{}},
            {"name":"f","csi":{"nodePublishSecretRef":{"name":"csi-secret"}}},{"name":"g","azureFile":{"secretName":"azure"}},
            {"name":"h","cephfs":{"secretRef":{"name":"ceph"}}}],
        "resourceClaims":[{"name":"r1","resourceClaimName":"given"},{"name":"r2","resourceClaimTemplateName":"t"},
            {"name":"r3","resourceClaimTemplateName":"t"}]},
        "status":{"resourceClaimStatuses":[{"name":"r2","resourceClaimName":"made"}],
            "extendedResourceClaimStatus":{"resourceClaimName":"extended"}}}"#;
    read(json)
}

/// As it is read from the cache.
fn read(json: &str) -> Value {
    let stored = kubelith_codec::json::to_vec(&value(json));
    kubelith_codec::json::parse_selected(&stored, &READ_OF_POD).unwrap()
}

/// Nothing that counts is left out.
#[test]
fn references_are_those_of_the_whole_pod() {
    let env = |env: &str| {
        format!(
            r#"{{"metadata":{{"name":"p","managedFields":[{{}}]}},"spec":{{"containers":[{{"name":"c","env":[{env}],"image":"i"}}],"nodeName":"n","serviceAccountName":"s"}}}}"#
        )
    };
    let mirror =
        r#"{"metadata":{"annotations":{"a":"b","kubernetes.io/config.mirror":"x"}},"spec":{"serviceAccountName":"s"}}"#;
    for (pod, count) in [
        (env(r#"{"name":"A","value":"b"}"#), 1),
        (env(r#"{"name":"A","valueFrom":{"secretKeyRef":{"key":"k","name":"secret"}}}"#), 2),
        (mirror.to_owned(), 0),
    ] {
        let (part, whole) = (read(&pod), value(&pod));
        assert_eq!(references::of_pod(&part), references::of_pod(&whole), "{pod}");
        assert_eq!(references::of_pod(&part).len(), count, "{pod}");
    }
}

fn volume() -> Value {
    value(
        r#"{"metadata":{"name":"pv"},"spec":{"claimRef":{"namespace":"ns","name":"claim"},
        "csi":{"nodeStageSecretRef":{"namespace":"sec","name":"stage"},
               "controllerPublishSecretRef":{"namespace":"sec","name":"controller"}}}}"#,
    )
}

fn on_node(name: &str, node: &str) -> Value {
    value(&format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"nodeName":"{node}"}}}}"#))
}

fn graph() -> Arc<NodeGraph> {
    let graph = NodeGraph::default();
    graph.put(NodeGraphKind::Pod, &pod());
    graph.put(NodeGraphKind::PersistentVolume, &volume());
    graph.put(NodeGraphKind::VolumeAttachment, &on_node("va", "n1"));
    graph.put(NodeGraphKind::ResourceSlice, &on_node("slice", "n1"));
    let mut request = on_node("pcr", "n1");
    request.set_at(&["metadata", "namespace"], "ns".into());
    graph.put(NodeGraphKind::PodCertificateRequest, &request);
    Arc::new(graph)
}

/// `verb group/resource[/sub] [namespace/]name`, `-` for nothing, with `own` or `other` as node selector.
fn ask(graph: &Arc<NodeGraph>, node: &str, request: &str) -> Decision {
    ask_with(("PodCertificateRequest", "true"), graph, node, request)
}

fn ask_with(gate: (&str, &str), graph: &Arc<NodeGraph>, node: &str, request: &str) -> Decision {
    let mut words = request.split(' ');
    let verb = words.next().unwrap();
    let resource: Vec<&str> = words.next().unwrap().split('/').collect();
    let (namespace, name) = words.next().unwrap_or("-").split_once('/').unwrap_or_default();
    let selector = words.next().map(|w| if w == "own" { node } else { "elsewhere" });
    let user = User::named(format!("system:node:{node}")).with_groups(&["system:nodes"]);
    let requirement =
        |n: &str| Requirement { key: "spec.nodeName".into(), operator: Operator::In, values: vec![n.into()] };
    let attributes = Attributes {
        user: Arc::new(user),
        verb: verb.into(),
        group: resource[0].into(),
        resource: resource[1].into(),
        subresource: resource.get(2).copied().unwrap_or("").into(),
        namespace: namespace.into(),
        name: name.into(),
        resource_request: true,
        field_selector: selector
            .map_or_else(Selector::default, |n| Selector { requirements: [requirement(n)].into(), error: None }),
        ..Attributes::default()
    };
    let gates = FeatureGates::parse([(gate.0, Some(gate.1))], Default::default()).unwrap();
    NodeAuthorizer::new(graph.clone(), &gates).decide(&attributes)
}

#[test]
fn what_a_pod_needs_its_node_may_read() {
    let graph = graph();
    let related = "init-secret env-secret vol-secret proj-secret csi-secret azure ceph pull";
    let mut requests: Vec<String> = related.split(' ').map(|n| format!("get /secrets ns/{n}")).collect();
    let configs = "env-config all-config debug-config vol-config proj-config";
    requests.extend(configs.split(' ').map(|n| format!("watch /configmaps ns/{n}")));
    for claim in ["given", "made", "extended"] {
        requests.push(format!("get resource.k8s.io/resourceclaims ns/{claim}"));
    }
    for other in [
        "get /persistentvolumeclaims ns/claim",
        "get /persistentvolumeclaims ns/web-e",
        "patch /persistentvolumeclaims/status ns/claim",
        "get /persistentvolumes /pv",
        "get /secrets sec/stage",
        "get storage.k8s.io/volumeattachments /va",
        "get /serviceaccounts ns/sa",
        "create /serviceaccounts/token ns/sa",
        "get /pods ns/web",
        "watch /pods ns/web",
        "update resource.k8s.io/resourceslices /slice",
        "get certificates.k8s.io/podcertificaterequests ns/pcr",
    ] {
        requests.push(other.into());
    }
    for request in &requests {
        assert_eq!(ask(&graph, "n1", request), Decision::allow(""), "{request}");
        let refused = ask(&graph, "n2", request);
        assert_eq!(refused.reason, "no relationship found between node 'n2' and this object", "{request}");
        let elsewhere = request.replace("ns/", "other/").replace("sec/", "other/");
        if elsewhere != *request {
            assert!(!ask(&graph, "n1", &elsewhere).allowed(), "{elsewhere}");
        }
    }
    assert!(!ask(&graph, "n1", "get /secrets sec/controller").allowed());
}

#[test]
fn reasons() {
    let graph = graph();
    let cases = [
        ("delete /secrets ns/pull", "can only read resources of this type"),
        ("get /secrets/x ns/pull", "cannot read subresource"),
        ("list /secrets -", "can only read namespaced object of this type"),
        ("list /secrets ns/", "No Object name found"),
        ("update /persistentvolumeclaims ns/claim", "can only get individual resources of this type"),
        ("get /persistentvolumeclaims/status ns/claim", "can only get/update/patch this type"),
        ("get /persistentvolumes/status /pv", "cannot get subresource"),
        ("list /serviceaccounts ns/", "can only create tokens for individual service accounts"),
        ("create /serviceaccounts ns/sa", "can only create token subresource of serviceaccount"),
        (
            "list coordination.k8s.io/leases kube-node-lease/",
            "can only get, create, update, patch, or delete a node lease",
        ),
        ("get coordination.k8s.io/leases ns/n1", "can only access leases in the \"kube-node-lease\" system namespace"),
        (
            "get coordination.k8s.io/leases kube-node-lease/n2",
            "can only access node lease with the same name as the requesting node",
        ),
        ("watch storage.k8s.io/csinodes /n1", "can only get, create, update, patch, or delete a CSINode"),
        ("get storage.k8s.io/csinodes/status /n1", "cannot authorize CSINode subresources"),
        ("get storage.k8s.io/csinodes /n2", "can only access CSINode with the same name as the requesting node"),
        (
            "list resource.k8s.io/resourceslices - other",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        ("get resource.k8s.io/resourceslices/status /slice", "cannot authorize ResourceSlice subresources"),
        ("list /pods - other", "can only list/watch pods with spec.nodeName field selector"),
        ("list /pods -", "can only list/watch pods with spec.nodeName field selector"),
        ("list /nodes -", "node 'n1' cannot read all nodes, only its own Node object"),
        ("get /nodes /n2", "node 'n1' cannot read 'n2', only its own Node object"),
        ("delete certificates.k8s.io/podcertificaterequests ns/pcr", "nodes may not delete podcertificaterequests"),
        ("delete /nodes /n1", ""),
        ("update /pods ns/web", ""),
        ("get apps/deployments ns/d", ""),
    ];
    for (request, want) in cases {
        assert_eq!(ask(&graph, "n1", request), Decision::no_opinion(want), "{request}");
    }
}

#[test]
fn allowed_without_relation() {
    let graph = graph();
    for request in [
        "list /pods - own",
        "watch resource.k8s.io/resourceslices - own",
        "create /pods ns/",
        "delete /pods ns/any",
        "patch /pods/status ns/any",
        "create /pods/eviction ns/any",
        "get /nodes /n1",
        "create /nodes -",
        "update /nodes/status /n1",
        "create coordination.k8s.io/leases kube-node-lease/",
        "update coordination.k8s.io/leases kube-node-lease/n1",
        "create storage.k8s.io/csinodes -",
        "list /services -",
        "create authorization.k8s.io/subjectaccessreviews -",
        "list certificates.k8s.io/podcertificaterequests - own",
    ] {
        assert_eq!(ask(&graph, "n1", request), Decision::allow(""), "{request}");
    }
}

#[test]
fn relations_end_with_the_objects() {
    let graph = graph();
    let may = |request: &str| ask(&graph, "n1", request).allowed();
    let mut second = pod();
    second.set_at(&["metadata", "name"], "web2".into());
    graph.put(NodeGraphKind::Pod, &second);
    graph.delete(NodeGraphKind::Pod, "ns", "web");
    assert!(may("get /secrets ns/pull"), "the other pod still needs it");
    second.remove_at(&["spec", "imagePullSecrets"]);
    graph.put(NodeGraphKind::Pod, &second);
    assert!(!may("get /secrets ns/pull") && may("get /secrets ns/vol-secret") && may("get /secrets sec/stage"));
    graph.delete(NodeGraphKind::Pod, "ns", "web2");
    assert!(!may("get /secrets sec/stage") && !may("get /persistentvolumes /pv"));
    graph.delete(NodeGraphKind::PersistentVolume, "", "pv");
    graph.put(NodeGraphKind::VolumeAttachment, &on_node("va", ""));
    graph.delete(NodeGraphKind::ResourceSlice, "", "slice");
    graph.delete(NodeGraphKind::PodCertificateRequest, "ns", "pcr");
    assert!(graph.is_empty());
}

#[test]
fn the_first_question_fills_the_graph() {
    let graph = Arc::new(NodeGraph::default());
    assert!(!ask(&graph, "n1", "get /pods ns/web").allowed());
    let filled = Arc::downgrade(&graph);
    graph.fill_when_asked(move || filled.upgrade().unwrap().put(NodeGraphKind::Pod, &pod()));
    assert!(graph.is_empty());
    assert!(ask(&graph, "n1", "get /pods ns/web").allowed());
    graph.delete(NodeGraphKind::Pod, "ns", "web");
    assert!(!ask(&graph, "n1", "get /pods ns/web").allowed());
}

#[test]
fn mirror_pods_and_unbound_pods_relate_nothing() {
    let graph = Arc::new(NodeGraph::default());
    let mut mirror = pod();
    mirror.set_at(&["metadata", "annotations", "kubernetes.io/config.mirror"], "x".into());
    graph.put(NodeGraphKind::Pod, &mirror);
    assert!(ask(&graph, "n1", "get /pods ns/web").allowed());
    assert!(!ask(&graph, "n1", "get /secrets ns/pull").allowed());
    graph.delete(NodeGraphKind::Pod, "ns", "web");
    let mut unbound = pod();
    unbound.remove_at(&["spec", "nodeName"]);
    graph.put(NodeGraphKind::Pod, &unbound);
    assert!(graph.is_empty());
}

#[test]
fn accounts_are_read_by_gate() {
    const GATE: &str = "KubeletServiceAccountTokenForCredentialProviders";
    let get = |on: &str| ask_with((GATE, on), &graph(), "n1", "get /serviceaccounts ns/sa");
    assert!(get("true").allowed());
    assert_eq!(get("false").reason, "not allowed to get service accounts");
    assert!(ask_with((GATE, "false"), &graph(), "n1", "create /serviceaccounts/token ns/sa").allowed());
}

#[test]
fn who_is_a_node() {
    let identity =
        |name: &str, groups: &[&str]| node_identity(&User::named(name).with_groups(groups)).map(str::to_string);
    assert_eq!(identity("system:node:n1", &["system:nodes"]), Some("n1".into()));
    assert_eq!(identity("system:node:n1", &["system:masters"]), None);
    assert_eq!(identity("n1", &["system:nodes"]), None);
    assert_eq!(ask(&graph(), "", "get /nodes /n1").reason, "unknown node for user \"system:node:\"");
    let rules = NodeAuthorizer::new(graph(), &FeatureGates::default());
    let of = |user: &User| rules.rules_for(user, "");
    assert!(of(&User::named("system:node:n1").with_groups(&["system:nodes"])).incomplete);
    assert_eq!(of(&User::named("jane")), UserRules::default());
}
