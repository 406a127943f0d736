//! Plugins of which a test must fail without them: each does something to a request that otherwise goes through.

use super::Want::Passes;
use super::{Case, DEFAULT, Setting, World, merged, pod, refused};
use serde_json::{Value as Json, json};

const NODES: &str = "/api/v1/nodes";
const GROUPS: &str = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default";
const WORKLOADS: (&str, bool) = ("GenericWorkload", true);
const BUNDLES: (&str, bool) = ("ClusterTrustBundle", true);

async fn with(plugin: &'static [&'static str], turned: &'static [(&'static str, bool)]) -> World {
    World::start(Setting { plugins: plugin, turned, may: |_| false }).await
}

/// Both servers: one with the plugin, one without any.
async fn both(plugin: &'static [&'static str], turned: &'static [(&'static str, bool)]) -> [(World, bool); 2] {
    [(with(plugin, turned).await, true), (with(&[], turned).await, false)]
}

fn pods() -> String {
    format!("{DEFAULT}/pods")
}

fn resized(amounts: &Json) -> Json {
    json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": amounts}}]}})
}

async fn node(world: &World, name: &str, labels: &Json, status: &Json) {
    world.make("POST", NODES, &json!({"metadata": {"name": name, "labels": labels}})).await;
    world.make("PATCH", &format!("{NODES}/{name}/status"), &json!({"status": status})).await;
}

#[tokio::test]
async fn pods_grow_within_their_node() {
    let capacity = json!({"allocatable": {"cpu": "1", "memory": "1Gi"}, "capacity": {"cpu": "1", "memory": "1Gi"}});
    for (world, acts) in both(&["PodResizeValidator"], &[]).await {
        node(&world, "small", &json!({"kubernetes.io/os": "linux"}), &capacity).await;
        node(&world, "unlabelled", &json!({}), &capacity).await;
        node(&world, "windows", &json!({"kubernetes.io/os": "windows"}), &capacity).await;
        for name in ["small", "unlabelled", "windows", "nowhere"] {
            let small = json!({"cpu": "500m", "memory": "1Mi"});
            world.make("POST", &pods(), &merged(pod(name, name), &resized(&small))).await;
        }
        let resize = |name: &str, amounts: Json, why: &str| {
            let want = if acts && !why.is_empty() { refused(why) } else { Passes };
            Case("PATCH", format!("{}/{name}/resize", pods()), resized(&amounts), want)
        };
        let less = || json!({"cpu": "400m", "memory": "1Mi"});
        let linux = "pod resize is only supported on linux nodes, node \"windows\" is \"windows\"";
        let most = "node didn't have enough allocatable resources: cpu, requested: 2000, allocatable: 1000";
        let both = format!("{most}; memory, requested: 2147483648, allocatable: 1073741824");
        world
            .check(
                "alice",
                &[
                    resize("small", json!({"cpu": "1", "memory": "1Gi"}), ""),
                    resize("small", json!({"cpu": "2", "memory": "1Gi"}), most),
                    resize("unlabelled", json!({"cpu": "2", "memory": "2Gi"}), &both),
                    resize("windows", less(), linux),
                    resize("nowhere", less(), "node \"nowhere\" not found"),
                ],
            )
            .await;
        if acts {
            for (name, reason) in [("small", "NodeCapacity"), ("windows", "UnsupportedPlatform")] {
                let path = format!("{}/{name}/resize", pods());
                let (_, answer) =
                    world.ask("alice", "PATCH", &path, &resized(&json!({"cpu": "3", "memory": "1Mi"}))).await;
                assert_eq!(answer["details"]["causes"], json!([{"reason": reason}]), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn nodes_say_what_they_can() {
    const FEATURE: &str = "InPlacePodLevelResourcesVerticalScaling";
    for (world, acts) in both(&["NodeDeclaredFeatureValidator"], &[]).await {
        node(&world, "old", &json!({}), &json!({})).await;
        node(&world, "new", &json!({}), &json!({"declaredFeatures": [FEATURE]})).await;
        let whole = |cpu: &str| json!({"spec": {"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "4"}}}});
        for name in ["old", "new"] {
            world.make("POST", &pods(), &merged(pod(name, name), &whole("1"))).await;
        }
        let why = format!("pod update requires features {FEATURE} which are not available on node \"old\"");
        let resize = |name: &str, want| Case("PATCH", format!("{}/{name}/resize", pods()), whole("2"), want);
        let old = if acts { refused(&why) } else { Passes };
        world.check("alice", &[resize("old", old), resize("new", Passes)]).await;
    }
    let off = with(&["NodeDeclaredFeatureValidator"], &[("NodeDeclaredFeatures", false)]).await;
    node(&off, "old", &json!({}), &json!({})).await;
    let whole = |cpu: &str| json!({"spec": {"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "4"}}}});
    off.make("POST", &pods(), &merged(pod("old", "old"), &whole("1"))).await;
    off.check("alice", &[Case("PATCH", format!("{}/old/resize", pods()), whole("2"), Passes)]).await;
}

fn group(name: &str, more: &Json) -> Json {
    merged(json!({"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}), more)
}

#[tokio::test]
async fn jobs_of_gangs_keep_their_width() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    for (world, acts) in both(&["JobValidation"], &[WORKLOADS]).await {
        let template = |more: Json| {
            let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
            json!({"spec": {"parallelism": 2, "template": {"spec": merged(spec, &more)}}})
        };
        let job = |name: &str, more: Json| merged(json!({"metadata": {"name": name}}), &template(more));
        let owner = world.make("POST", JOBS, &job("owner", json!({}))).await;
        world.make("POST", JOBS, &job("free", json!({}))).await;
        let reference = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "controller": true,
            "uid": owner["metadata"]["uid"]}]);
        let groups = format!("{GROUPS}/podgroups");
        world.make("POST", &groups, &group("gang", &json!({"metadata": {"ownerReferences": reference}}))).await;
        world.make("POST", &groups, &group("named", &json!({}))).await;
        let basic = json!({"spec": {"schedulingPolicy": {"gang": null, "basic": {}}}});
        world.make("POST", &groups, &group("basic", &basic)).await;
        for name in ["named", "basic", "nowhere"] {
            let of = json!({"schedulingGroup": {"podGroupName": name}});
            world.make("POST", JOBS, &job(name, of)).await;
        }
        let widen = |job: &str, group: &str| {
            let why = format!("cannot change parallelism for a Job referencing gang-scheduled PodGroup \"{group}\"");
            let want = if acts && !group.is_empty() { refused(&why) } else { Passes };
            Case("PATCH", format!("{JOBS}/{job}"), json!({"spec": {"parallelism": 3}}), want)
        };
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        world
            .check(
                "alice",
                &[
                    Case("PATCH", format!("{JOBS}/owner"), label, Passes),
                    widen("owner", "gang"),
                    widen("named", "named"),
                    widen("basic", ""),
                    widen("nowhere", ""),
                    widen("free", ""),
                ],
            )
            .await;
    }
}

#[tokio::test]
async fn groups_of_pods() {
    let groups = format!("{GROUPS}/podgroups");
    for (world, acts) in both(&["PodGroupProtection"], &[WORKLOADS]).await {
        let made = world.make("POST", &groups, &group("g", &json!({}))).await;
        let finalizers = json!(["scheduling.k8s.io/podgroup-protection"]);
        assert_eq!(made["metadata"]["finalizers"] == finalizers, acts, "{made}");
    }
    for (world, acts) in both(&["PodGroupWorkloadExists"], &[WORKLOADS]).await {
        let templates = json!([{"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}]);
        let workload = json!({"metadata": {"name": "w"}, "spec": {"podGroupTemplates": templates}});
        world.make("POST", &format!("{GROUPS}/workloads"), &workload).await;
        let of = |name: &str, workload: &str, template: &str, why: &str| {
            let reference = json!({"workload": {"workloadName": workload, "podGroupTemplateName": template}});
            let want = if acts && !why.is_empty() { refused(&format!("PodGroup rejected: {why}")) } else { Passes };
            Case("POST", groups.clone(), group(name, &json!({"spec": {"podGroupTemplateRef": reference}})), want)
        };
        world
            .check(
                "alice",
                &[
                    of("a", "w", "t", ""),
                    of("b", "w", "odd", "PodGroupTemplate \"odd\" not found in Workload \"w\""),
                    of("c", "nowhere", "t", "Workload \"nowhere\" not found"),
                    Case("POST", groups.clone(), group("d", &json!({})), Passes),
                ],
            )
            .await;
    }
}

/// A request for a certificate; only its form matters.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIck1JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVMrejYzc256eCtCVThHCkhqN2ZBYlhPa3hYU1N2cE5rby9vREFEM1ZtWkI1ekJ6c3lOOHBjeXlmdXVacTluMjJuN2s5WGJGeEJzT2xaOVEKQjZKenlOT01vQUF3Q2dZSUtvWkl6ajBFQXdJRFNBQXdSUUlnU0VRZGRoWkgwdWlDOWc1NHpMd0JWZS9Ycm5lTwo2NEkzVUFrOENLTDF3Y2NDSVFEeVdXdFViWWlpSDEvSHRYaUJvV1Fld0RYRVh4aU1hQ2ZnYThpMEdBT1gyUT09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

#[tokio::test]
async fn signers_have_rights_of_their_own() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let asked = |name: &str| {
        let spec = json!({"request": REQUEST, "signerName": "example.com/s", "usages": ["client auth"]});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let approved =
        json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}});
    let failed =
        json!({"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}});
    for (plugin, part, change, what) in [
        (&["CertificateApproval"], "approval", approved, "approve requests with signerName \"example.com/s\""),
        (&["CertificateSigning"], "status", failed, "sign requests with signerName \"example.com/s\""),
    ] {
        // Nobody may; whoever may the signer, or all of its domain.
        let grants: [fn(&kubelith_auth::Attributes) -> bool; 3] = [
            |_| false,
            |asked| asked.resource == "signers" && asked.name == "example.com/s",
            |asked| asked.resource == "signers" && asked.name == "example.com/*",
        ];
        for (number, may) in grants.into_iter().enumerate() {
            let world = World::start(Setting { plugins: plugin, turned: &[], may }).await;
            world.make("POST", REQUESTS, &asked("r")).await;
            let want = match number {
                0 => refused(&format!("user not permitted to {what}")),
                _ => Passes,
            };
            let path = |part: &str| format!("{REQUESTS}/r{part}");
            let label = json!({"metadata": {"labels": {"a": "b"}}});
            let cases = [
                Case("PATCH", path(""), label, Passes),
                Case("PATCH", path(&format!("/{part}")), change.clone(), want),
            ];
            world.check("alice", &cases).await;
        }
        let without = with(&[], &[]).await;
        without.make("POST", REQUESTS, &asked("r")).await;
        without.make("PATCH", &format!("{REQUESTS}/r/{part}"), &change).await;
    }
}

fn authority() -> String {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}

#[tokio::test]
async fn bundles_are_attested() {
    const PATH: &str = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles";
    for (world, acts) in both(&["ClusterTrustBundleAttest"], &[BUNDLES]).await {
        let spec = json!({"signerName": "example.com/s", "trustBundle": authority()});
        let bundle = json!({"metadata": {"name": "example.com:s:b"}, "spec": spec});
        let (code, answer) = world.ask("alice", "POST", PATH, &bundle).await;
        let message = answer["message"].as_str().unwrap_or_default();
        let refused = code == 403 && message.ends_with("user not permitted to attest for signerName \"example.com/s\"");
        assert_eq!((refused, code == 201), (acts, !acts), "{code} {message}");
    }
}

#[tokio::test]
async fn runtime_classes_bring_tolerations() {
    const CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";
    let world = with(&["RuntimeClass"], &[]).await;
    let spot = |value: Option<&str>| match value {
        Some(value) => json!({"key": "spot", "operator": "Equal", "value": value, "effect": "NoSchedule"}),
        None => json!({"key": "spot", "operator": "Exists", "effect": "NoSchedule"}),
    };
    for (name, toleration) in [("wide", spot(None)), ("narrow", spot(Some("a")))] {
        let scheduling = json!({"nodeSelector": {"zone": "a"}, "tolerations": [toleration]});
        world
            .make("POST", CLASSES, &json!({"metadata": {"name": name}, "handler": "h", "scheduling": scheduling}))
            .await;
    }
    let cases = [
        // What covers another takes its place, wherever it comes from.
        ("wide", json!([spot(Some("a"))]), json!([spot(None)])),
        ("narrow", json!([spot(None)]), json!([spot(None)])),
        ("narrow", json!([spot(Some("b"))]), json!([spot(Some("b")), spot(Some("a"))])),
        ("narrow", json!([spot(Some("a"))]), json!([spot(Some("a"))])),
        ("wide", json!([]), json!([spot(None)])),
    ];
    for (number, (class, own, want)) in cases.into_iter().enumerate() {
        let spec = json!({"nodeName": null, "runtimeClassName": class, "tolerations": own});
        let body = merged(pod(&format!("p{number}"), ""), &json!({"spec": spec}));
        let made = world.make("POST", &pods(), &body).await;
        assert_eq!(made["spec"]["tolerations"], want, "{class} {own}");
        assert_eq!(made["spec"]["nodeSelector"], json!({"zone": "a"}));
    }
    let elsewhere = json!({"spec": {"nodeName": null, "runtimeClassName": "wide", "nodeSelector": {"zone": "b"}}});
    let why = "conflict: runtimeClass.scheduling.nodeSelector[zone] = a; pod.spec.nodeSelector[zone] = b";
    let none = json!({"spec": {"runtimeClassName": "none"}});
    world
        .check(
            "alice",
            &[
                Case("POST", pods(), merged(pod("x", ""), &elsewhere), refused(why)),
                Case(
                    "POST",
                    pods(),
                    merged(pod("x", ""), &none),
                    refused("pod rejected: RuntimeClass \"none\" not found"),
                ),
            ],
        )
        .await;
}

/// Who judges what is about to be stored knows its name, also if the server made it.
#[tokio::test]
async fn made_names_are_seen() {
    const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
    let world = with(&["ValidatingAdmissionPolicy"], &[]).await;
    world.make("POST", "/api/v1/namespaces", &json!({"metadata": {"name": "default"}})).await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let validations = json!([{"expression": "request.name == object.metadata.name && request.name.size() > 2"}]);
    let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": validations});
    world
        .make(
            "POST",
            &format!("{GROUP}/validatingadmissionpolicies"),
            &json!({"metadata": {"name": "p"}, "spec": spec}),
        )
        .await;
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    world.make("POST", &format!("{GROUP}/validatingadmissionpolicybindings"), &binding).await;
    let maps = format!("{DEFAULT}/configmaps");
    let why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: request.name == object.metadata.name && request.name.size() > 2";
    world
        .check(
            "alice",
            &[
                Case("POST", maps.clone(), json!({"metadata": {"generateName": "x-"}}), Passes),
                Case("POST", maps.clone(), json!({"metadata": {"name": "long"}}), Passes),
                Case("POST", maps, json!({"metadata": {"name": "a"}}), super::Want::Code(422, why.into())),
            ],
        )
        .await;
}

/// A pod gets the default class that there is when it comes, and none that was.
#[tokio::test]
async fn the_default_priority_follows_its_class() {
    const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let world = with(&["Priority"], &[]).await;
    let priority = || async {
        let made = world.make("POST", &format!("{DEFAULT}/pods?dryRun=All"), &pod("p", "")).await;
        (made["spec"]["priorityClassName"].clone(), made["spec"]["priority"].clone())
    };
    let class = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value, "globalDefault": true});
    assert_eq!(priority().await, (Json::Null, json!(0)));
    world.make("POST", CLASSES, &class("first", 5)).await;
    assert_eq!(priority().await, (json!("first"), json!(5)));
    let second = "PriorityClass first is already marked as default. Only one default can exist";
    world.check("admin", &[Case("POST", CLASSES.into(), class("second", 7), refused(second))]).await;
    world.make("PATCH", &format!("{CLASSES}/first"), &json!({"globalDefault": false})).await;
    assert_eq!(priority().await, (Json::Null, json!(0)));
    world.make("POST", CLASSES, &class("second", 7)).await;
    assert_eq!(priority().await, (json!("second"), json!(7)));
    world.make("DELETE", &format!("{CLASSES}/second"), &Json::Null).await;
    assert_eq!(priority().await, (Json::Null, json!(0)));
}
