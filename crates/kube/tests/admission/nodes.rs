//! NodeRestriction: what a kubelet may do, rule by rule.

use super::Want::{Admitted, Code, Passes};
use super::{Case, DEFAULT, Setting, World, merged, pod, refused};
use kubelith_auth::Attributes;
use serde_json::{Value as Json, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";
const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const NODES: &str = "/api/v1/nodes";
const NODE: &str = "system:node:n1";

/// Requests for certificates of `system:node:n1` and `system:node:n2`.
const OF_N1: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIck1JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVMrejYzc256eCtCVThHCkhqN2ZBYlhPa3hYU1N2cE5rby9vREFEM1ZtWkI1ekJ6c3lOOHBjeXlmdXVacTluMjJuN2s5WGJGeEJzT2xaOVEKQjZKenlOT01vQUF3Q2dZSUtvWkl6ajBFQXdJRFNBQXdSUUlnU0VRZGRoWkgwdWlDOWc1NHpMd0JWZS9Ycm5lTwo2NEkzVUFrOENLTDF3Y2NDSVFEeVdXdFViWWlpSDEvSHRYaUJvV1Fld0RYRVh4aU1hQ2ZnYThpMEdBT1gyUT09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
const OF_N2: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIck1JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakl3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVFaV1BiZzRtbTd2eWdMCldiVWk3OVNpYVJPMTZNZ2drVm9BLzRuYUVwMmo4Skkyc2tTUERaQVdKK1lLVldsb2pmZjZzK2M2bzExakhTNjIKM2FqZmtLTXVvQUF3Q2dZSUtvWkl6ajBFQXdJRFNBQXdSUUlnYWZuM1RQSTM4UVNGVER2ZW9vcmFKZnVtNjdpTQpWellqdUhnRURSbGwxeE1DSVFEeEQ5OTBWMi9NVXVURFRYbWIzZWQ5RHU2all0Sm03Y0tzTEpWUGlkbGV1Zz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

/// A block of that kind with three zeros in it.
const NO_REQUEST: &str =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KQUFBQQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
/// The first one, as pods' requests have it.
const DER_OF_N1: &str = "MIHrMIGSAgEAMDAxFTATBgNVBAoMDHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lzdGVtOm5vZGU6bjEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAS+z63snzx+BU8GHj7fAbXOkxXSSvpNko/oDAD3VmZB5zBzsyN8pcyyfuuZq9n22n7k9XbFxBsOlZ9QB6JzyNOMoAAwCgYIKoZIzj0EAwIDSAAwRQIgSEQddhZH0uiC9g54zLwBVe/XrneO64I3UAk8CKL1wccCIQDyWWtUbYiiH1/HtXiBoWQewDXEXxiMaCfga8i0GAOX2Q==";

async fn world(turned: &'static [(&'static str, bool)]) -> World {
    let may = |asked: &Attributes| asked.resource == "granted";
    let world = World::start(Setting { plugins: &["NodeRestriction"], turned, may }).await;
    for name in ["n1", "n2"] {
        world.make("POST", NODES, &json!({"metadata": {"name": name}})).await;
    }
    world
}

async fn uid_of(world: &World, path: &str) -> Json {
    world.make("GET", path, &Json::Null).await["metadata"]["uid"].clone()
}

fn at(path: &str, rest: &str) -> String {
    format!("{path}/{rest}")
}

#[tokio::test]
async fn pods() {
    let world = world(&[]).await;
    let pods = at(DEFAULT, "pods");
    for (name, node) in [("mine", "n1"), ("other", "n1"), ("gone", "n1"), ("theirs", "n2"), ("loose", "")] {
        world.make("POST", &pods, &pod(name, node)).await;
    }
    let uid = uid_of(&world, &at(NODES, "n1")).await;
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": true});
    let other = json!({"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "u2"});
    let mirror = |change: Json| {
        let meta = json!({"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]});
        merged(merged(pod("mirror", "n1"), &json!({"metadata": meta})), &change)
    };
    let owned = |change: Json| mirror(json!({"metadata": {"ownerReferences": [merged(owner.clone(), &change)]}}));
    let refers = |spec: Json| mirror(json!({"spec": spec}));
    let volume = |source: Json| refers(json!({"volumes": [merged(json!({"name": "v"}), &source)]}));
    let new = |body: Json, want| Case("POST", pods.clone(), body, want);
    let is_own = "node \"n1\" can only create pods with an owner reference set to itself";
    let reference = |what: &str| refused(&format!("node \"n1\" can not create pods that reference {what}"));
    world
        .check(
            NODE,
            &[
                new(
                    pod("plain", "n1"),
                    refused(
                        "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only create mirror pods",
                    ),
                ),
                new(
                    mirror(json!({"spec": {"nodeName": "n2"}})),
                    refused("node \"n1\" can only create pods with spec.nodeName set to itself"),
                ),
                new(
                    mirror(json!({"spec": {"nodeName": null}})),
                    refused("node \"n1\" can only create pods with spec.nodeName set to itself"),
                ),
                new(mirror(json!({"metadata": {"ownerReferences": []}})), refused(is_own)),
                new(
                    mirror(json!({"metadata": {"ownerReferences": [owner, other]}})),
                    refused("node \"n1\" can only create pods with a single owner reference set to itself"),
                ),
                new(owned(json!({"name": "n2"})), refused(is_own)),
                new(owned(json!({"apiVersion": "v2"})), refused(is_own)),
                new(owned(json!({"kind": "Pod"})), refused(is_own)),
                new(
                    owned(json!({"controller": null})),
                    refused("node \"n1\" can only create pods with a controller owner reference set to itself"),
                ),
                new(
                    owned(json!({"controller": false})),
                    refused("node \"n1\" can only create pods with a controller owner reference set to itself"),
                ),
                new(
                    owned(json!({"blockOwnerDeletion": true})),
                    refused("node \"n1\" must not set blockOwnerDeletion on an owner reference"),
                ),
                new(
                    owned(json!({"uid": "other"})),
                    refused(&format!("node n1 UID mismatch: expected other got {}", uid.as_str().unwrap())),
                ),
                new(refers(json!({"serviceAccountName": "a"})), reference("serviceaccounts")),
                new(refers(json!({"imagePullSecrets": [{"name": "s"}]})), reference("secrets")),
                new(volume(json!({"secret": {"secretName": "s"}})), reference("secrets")),
                new(volume(json!({"configMap": {"name": "c"}})), reference("configmaps")),
                new(volume(json!({"persistentVolumeClaim": {"claimName": "c"}})), reference("persistentvolumeclaims")),
                new(
                    refers(json!({"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]})),
                    reference("resourceclaims"),
                ),
                new(
                    volume(json!({"projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "p"}}]}})),
                    reference("clustertrustbundles"),
                ),
                new(volume(json!({"emptyDir": {}})), Passes),
                Case(
                    "PATCH",
                    at(&pods, "mine"),
                    json!({"metadata": {"labels": {"a": "b"}}}),
                    refused("unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror pods"),
                ),
                Case(
                    "DELETE",
                    at(&pods, "theirs"),
                    Json::Null,
                    refused("node \"n1\" can only delete pods with spec.nodeName set to itself"),
                ),
                Case(
                    "DELETE",
                    at(&pods, "loose"),
                    Json::Null,
                    refused("node \"n1\" can only delete pods with spec.nodeName set to itself"),
                ),
                Case("DELETE", at(&pods, "nowhere"), Json::Null, Code(404, "\"nowhere\" not found".into())),
                Case("DELETE", at(&pods, "other"), Json::Null, Passes),
            ],
        )
        .await;
    let status = |name: &str, body: Json, want| Case("PATCH", at(&pods, &format!("{name}/status")), body, want);
    let evict = |name: &str, want| {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        Case("POST", at(&pods, &format!("{name}/eviction")), body, want)
    };
    let claimed = json!({"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "c"}]});
    world
        .check(
            NODE,
            &[
                status("mine", json!({"status": {"reason": "x"}}), Passes),
                status(
                    "theirs",
                    json!({"status": {"reason": "x"}}),
                    refused("node \"n1\" can only update pod status for pods with spec.nodeName set to itself"),
                ),
                status(
                    "mine",
                    json!({"metadata": {"labels": {"a": "b"}}}),
                    refused("node \"n1\" cannot update labels through pod status"),
                ),
                status(
                    "mine",
                    json!({"status": claimed}),
                    refused("node \"n1\" cannot update resource claim statues"),
                ),
                status(
                    "mine",
                    json!({"status": {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": []}}}),
                    refused("node \"n1\" cannot update extended resource claim status"),
                ),
                evict("theirs", refused("node n1 can only evict pods with spec.nodeName set to itself")),
                evict("loose", refused("node n1 can only evict pods with spec.nodeName set to itself")),
                evict("nowhere", Code(404, "pod \"nowhere\" not found".into())),
                evict("gone", Passes),
                Case(
                    "POST",
                    at(&pods, "loose/binding"),
                    json!({"target": {"kind": "Node", "name": "n1"}}),
                    refused("unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"),
                ),
                Case(
                    "PATCH",
                    at(&pods, "mine/resize"),
                    json!({"spec": {}}),
                    refused("unexpected pod subresource \"resize\", only 'status' and 'eviction' are allowed"),
                ),
            ],
        )
        .await;
    // A node that there is not, one that has no name, and somebody who is no node.
    let of_n3 = merged(
        mirror(json!({"spec": {"nodeName": "n3"}})),
        &json!({"metadata": {"ownerReferences": [merged(owner.clone(), &json!({"name": "n3"}))]}}),
    );
    world.check("system:node:n3", &[new(of_n3, Code(404, "node \"n3\" not found".into()))]).await;
    let nobody = refused("could not determine node from user \"system:node:\"");
    world.check("system:node:", &[new(pod("p", "n1"), nobody)]).await;
    world
        .check("alice", &[new(pod("p", "n1"), Passes), status("theirs", json!({"status": {"reason": "y"}}), Passes)])
        .await;
    // Of many that are deleted at once a node deletes none, not even its own: none is named.
    let left = || async { world.make("GET", &pods, &Json::Null).await["items"].as_array().map(Vec::len) };
    let before = left().await;
    world.check(NODE, &[Case("DELETE", pods.clone(), Json::Null, Passes)]).await;
    assert_eq!(left().await, before);
}

#[tokio::test]
async fn nodes() {
    let world = world(&[]).await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"});
    let n1 = || at(NODES, "n1");
    let change = |body: Json, want| Case("PATCH", at(NODES, "n1"), body, want);
    let labels = |labels: Json, want| change(json!({"metadata": {"labels": labels}}), want);
    let source = json!({"configMap": {"namespace": "n", "name": "c", "kubeletConfigKey": "k", "uid": "u"}});
    let named = |labels: Json| json!({"metadata": {"name": "n1", "labels": labels}});
    world
        .check(
            NODE,
            &[
                labels(json!({"a": "b", "kubernetes.io/os": "linux", "node.kubernetes.io/x": "y"}), Passes),
                labels(json!({"a": null, "kubernetes.io/os": "windows"}), Passes),
                labels(
                    json!({"node-role.kubernetes.io/x": "", "foo.k8s.io/y": ""}),
                    refused("is not allowed to modify labels: foo.k8s.io/y, node-role.kubernetes.io/x"),
                ),
                labels(
                    json!({"node-restriction.kubernetes.io/x": ""}),
                    refused("is not allowed to modify labels: node-restriction.kubernetes.io/x"),
                ),
                change(
                    json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
                    refused("node \"n1\" is not allowed to modify taints"),
                ),
                change(
                    json!({"metadata": {"ownerReferences": [owner]}}),
                    refused("node \"n1\" is not allowed to modify ownerReferences"),
                ),
                change(
                    json!({"spec": {"configSource": source}}),
                    refused("node \"n1\" is not allowed to update configSource to a new non-nil configSource"),
                ),
                Case("PATCH", at(NODES, "n1/status"), json!({"status": {"phase": "x"}}), Passes),
                Case(
                    "PATCH",
                    at(NODES, "n2"),
                    json!({"metadata": {"labels": {"a": "b"}}}),
                    refused("node \"n1\" is not allowed to modify node \"n2\""),
                ),
                Case(
                    "PATCH",
                    at(NODES, "n2/status"),
                    json!({"status": {"phase": "x"}}),
                    refused("node \"n1\" is not allowed to modify node \"n2\""),
                ),
                Case(
                    "DELETE",
                    at(NODES, "n2"),
                    Json::Null,
                    refused("node \"n1\" is not allowed to modify node \"n2\""),
                ),
                Case("DELETE", n1(), Json::Null, Passes),
                Case(
                    "POST",
                    NODES.into(),
                    json!({"metadata": {"name": "n3"}}),
                    refused("node \"n1\" is not allowed to modify node \"n3\""),
                ),
                Case(
                    "POST",
                    NODES.into(),
                    named(json!({"node-restriction.kubernetes.io/x": "", "kubernetes.io/y": ""})),
                    refused(
                        "node \"n1\" is not allowed to set the following labels: kubernetes.io/y, node-restriction.kubernetes.io/x",
                    ),
                ),
                Case(
                    "POST",
                    NODES.into(),
                    merged(named(json!({})), &json!({"spec": {"configSource": source}})),
                    refused("node \"n1\" is not allowed to create pods with a non-nil configSource"),
                ),
                Case(
                    "POST",
                    NODES.into(),
                    merged(
                        named(json!({"kubernetes.io/hostname": "n1", "x": "y"})),
                        &json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
                    ),
                    Passes,
                ),
            ],
        )
        .await;
    // What an operator has set stays without complaint, as long as the node leaves it alone.
    world.make("PATCH", &n1(), &json!({"metadata": {"labels": {"node-role.kubernetes.io/x": "1"}}})).await;
    world
        .check(
            NODE,
            &[
                labels(json!({"b": "c"}), Passes),
                labels(
                    json!({"node-role.kubernetes.io/x": null}),
                    refused("is not allowed to modify labels: node-role.kubernetes.io/x"),
                ),
                change(json!({"spec": {"taints": null}}), refused("node \"n1\" is not allowed to modify taints")),
            ],
        )
        .await;
}

#[tokio::test]
async fn what_belongs_to_a_node() {
    let world = world(&[]).await;
    let lease = |namespace: &str| format!("{LEASES}/{namespace}/leases");
    let (own, other) = (lease("kube-node-lease"), lease("default"));
    let named = |name: &str| json!({"metadata": {"name": name}});
    let csi = |name: &str| json!({"metadata": {"name": name}, "spec": {"drivers": []}});
    let slice = |name: &str, node: Json| {
        let pool = json!({"name": "p", "resourceSliceCount": 1, "generation": 1});
        let everywhere = node.is_null().then_some(true);
        json!({"metadata": {"name": name}, "spec": {
            "driver": "d.example.com", "pool": pool, "nodeName": node, "allNodes": everywhere}})
    };
    for name in ["n1", "n2"] {
        world.make("POST", &other, &named(name)).await;
    }
    world.make("POST", &own, &named("n2")).await;
    world.make("POST", CSI_NODES, &csi("n2")).await;
    world.make("POST", SLICES, &slice("theirs", json!("n2"))).await;
    let renew = json!({"spec": {"leaseDurationSeconds": 40}});
    let elsewhere = || refused("can only access leases in the \"kube-node-lease\" system namespace");
    let not_mine = || refused("can only access node lease with the same name as the requesting node");
    let not_my_csi = || refused("can only access CSINode with the same name as the requesting node");
    let annotate = json!({"metadata": {"annotations": {"a": "b"}}});
    let foreign =
        |verb: &str| refused(&format!("can only {verb} ResourceSlice with the same NodeName as the requesting node"));
    world
        .check(
            NODE,
            &[
                Case("POST", other.clone(), named("x"), elsewhere()),
                Case("PATCH", at(&other, "n1"), renew.clone(), elsewhere()),
                Case("DELETE", at(&other, "n1"), Json::Null, elsewhere()),
                Case("POST", own.clone(), named("n3"), not_mine()),
                Case("PATCH", at(&own, "n2"), renew.clone(), not_mine()),
                Case("DELETE", at(&own, "n2"), Json::Null, not_mine()),
                Case("POST", own.clone(), named("n1"), Passes),
                Case("PATCH", at(&own, "n1"), renew, Passes),
                Case("DELETE", at(&own, "n1"), Json::Null, Passes),
                Case("POST", CSI_NODES.into(), csi("n3"), not_my_csi()),
                Case("PATCH", at(CSI_NODES, "n2"), annotate.clone(), not_my_csi()),
                Case("DELETE", at(CSI_NODES, "n2"), Json::Null, not_my_csi()),
                Case("POST", CSI_NODES.into(), csi("n1"), Passes),
                Case("PATCH", at(CSI_NODES, "n1"), annotate.clone(), Passes),
                Case("DELETE", at(CSI_NODES, "n1"), Json::Null, Passes),
                Case("POST", SLICES.into(), slice("a", json!("n2")), foreign("create")),
                Case("POST", SLICES.into(), slice("a", Json::Null), foreign("create")),
                Case("POST", SLICES.into(), slice("a", json!("n1")), Passes),
                Case("DELETE", at(SLICES, "theirs"), Json::Null, foreign("delete")),
                Case("DELETE", at(SLICES, "a"), Json::Null, Passes),
                Case("POST", at(DEFAULT, "configmaps"), named("unrelated"), Passes),
            ],
        )
        .await;
}

#[tokio::test]
async fn requests_for_certificates() {
    const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let asks = |name: &str, signer: &str, request: &str| {
        let usages =
            json!(["digital signature", if signer.ends_with("serving") { "server auth" } else { "client auth" }]);
        let spec = json!({"request": request, "signerName": signer, "usages": usages});
        Case("POST", PATH.into(), json!({"metadata": {"name": name}, "spec": spec}), Passes)
    };
    let or = |Case(method, path, body, _): Case, want| Case(method, path, body, want);
    let (serving, client) = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet");
    let no = || refused("can only create a node CSR with CN=system:node:n1");
    let secure = world(&[]).await;
    secure
        .check(
            NODE,
            &[
                asks("a", serving, OF_N1),
                asks("b", client, OF_N1),
                asks("c", "example.com/other", OF_N2),
                or(asks("d", serving, OF_N2), no()),
                or(asks("e", client, OF_N2), no()),
                or(
                    asks("f", client, "bm9uZQ=="),
                    refused("unable to parse csr: PEM block type must be CERTIFICATE REQUEST"),
                ),
                or(asks("g", serving, NO_REQUEST), refused("omitEmpty:false} certificateRequest @2")),
            ],
        )
        .await;
    let insecure = world(&[("AllowInsecureKubeletCertificateSigningRequests", true)]).await;
    insecure.check(NODE, &[asks("d", serving, OF_N2)]).await;
}

#[tokio::test]
async fn claims() {
    let claims = at(DEFAULT, "persistentvolumeclaims");
    let claim = json!({"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let status = |body: Json, want| Case("PATCH", at(&claims, "c/status"), body, want);
    let grown = json!({"status": {"capacity": {"storage": "2Gi"},
        "conditions": [{"type": "Resizing", "status": "True"}]}});
    let allocated = json!({"status": {"allocatedResources": {"storage": "2Gi"}}});
    let other = "node \"n1\" is not allowed to update fields other than status.quantity and status.conditions: ";
    for recovers in [true, false] {
        let world = match recovers {
            true => world(&[]).await,
            false => world(&[("RecoverVolumeExpansionFailure", false)]).await,
        };
        world.make("POST", &claims, &claim).await;
        world
            .check(
                NODE,
                &[
                    status(grown.clone(), Passes),
                    Case("PATCH", at(&claims, "c"), grown.clone(), refused("may only update PVC status")),
                    Case("DELETE", at(&claims, "c"), Json::Null, refused("may only update PVC status")),
                ],
            )
            .await;
        let statuses = json!({"status": {"allocatedResourceStatuses": {"storage": "NodeResizePending"}}});
        for body in [allocated.clone(), statuses] {
            let (code, answer) = world.ask(NODE, "PATCH", &at(&claims, "c/status"), &body).await;
            let message = answer["message"].as_str().unwrap_or_default();
            match recovers {
                true => assert_eq!(code, 200, "{body}: {message}"),
                false => assert!(code == 403 && message.contains(other), "{body}: {code} {message}"),
            }
        }
        // What differs is shown by the names that Go has for it.
        for (body, difference) in [
            (
                json!({"status": {"phase": "Bound"}}),
                "\n  \"Status\": {\n-  \"Phase\": \"Pending\",\n+  \"Phase\": \"Bound\",\n",
            ),
            (
                json!({"status": {"accessModes": ["ReadWriteOnce"]}}),
                "\n-  \"AccessModes\": null,\n+  \"AccessModes\": [\n",
            ),
            (json!({"metadata": {"labels": {"a": "b"}}}), "\n+ \"labels\": {\n+  \"a\": \"b\"\n+ },\n"),
            (json!({"metadata": {"finalizers": ["a/b"]}}), "\n+ \"finalizers\": [\n+  \"a/b\"\n+ ],\n"),
        ] {
            let (code, answer) = world.ask(NODE, "PATCH", &at(&claims, "c/status"), &body).await;
            let message = answer["message"].as_str().unwrap_or_default();
            let is_shown = message.contains(&format!("{other}@@ ")) && message.contains(difference);
            assert!(code == 403 && is_shown, "{body}: {code} {message}");
        }
    }
}

#[tokio::test]
async fn tokens() {
    let open = world(&[("ServiceAccountNodeAudienceRestriction", false)]).await;
    let strict = world(&[]).await;
    let accounts = at(DEFAULT, "serviceaccounts");
    let drivers = "/apis/storage.k8s.io/v1/csidrivers";
    let volumes = "/api/v1/persistentvolumes";
    let claims = at(DEFAULT, "persistentvolumeclaims");
    for world in [&open, &strict] {
        world.make("POST", &accounts, &json!({"metadata": {"name": "a"}})).await;
        world.make("POST", &at(DEFAULT, "pods"), &pod("theirs", "n2")).await;
        for (name, audience) in [("d.example.com", "by-driver"), ("disk.csi.azure.com", "migrated")] {
            let spec = json!({"tokenRequests": [{"audience": audience}]});
            world.make("POST", drivers, &json!({"metadata": {"name": name}, "spec": spec})).await;
        }
        let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d.example.com", "volumeHandle": "h"}});
        world.make("POST", volumes, &json!({"metadata": {"name": "v"}, "spec": spec})).await;
        for (name, volume) in [("c", "v"), ("p-made", "v"), ("unbound", "")] {
            let spec = json!({"volumeName": volume, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}});
            world.make("POST", &claims, &json!({"metadata": {"name": name}, "spec": spec})).await;
        }
    }
    let projected = json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "in-pod"}}]}});
    let template = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    // The volume of the pod, the audience, and whether a driver of that name or a right is what lets it through.
    let cases: [(Json, &[&str], Option<&str>); 16] = [
        (projected.clone(), &["in-pod"], None),
        (json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}), &[], None),
        (projected.clone(), &["a", "b"], Some("node may only request 0 or 1 audiences")),
        (
            projected.clone(),
            &["elsewhere"],
            Some(
                "audience \"elsewhere\" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience",
            ),
        ),
        (projected, &["granted"], None),
        (json!({"csi": {"driver": "d.example.com"}}), &["by-driver"], None),
        (
            json!({"csi": {"driver": "none.example.com"}}),
            &["by-driver"],
            Some("error validating audience \"by-driver\": csidriver.storage.k8s.io \"none.example.com\" not found"),
        ),
        (json!({"persistentVolumeClaim": {"claimName": "c"}}), &["by-driver"], None),
        (
            json!({"persistentVolumeClaim": {"claimName": "nowhere"}}),
            &["by-driver"],
            Some("error validating audience \"by-driver\": persistentvolumeclaim \"nowhere\" not found"),
        ),
        (json!({"name": "made", "ephemeral": {"volumeClaimTemplate": template}}), &["by-driver"], None),
        (
            json!({"persistentVolumeClaim": {"claimName": "unbound"}}),
            &["by-driver"],
            Some("error validating audience \"by-driver\": persistentvolume \"\" not found"),
        ),
        (
            json!({"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/d", "kind": "Managed"}}),
            &["migrated"],
            None,
        ),
        (
            json!({"azureDisk": {"diskName": "d", "diskURI": "https://x.example/d.vhd", "kind": "Shared"}}),
            &["migrated"],
            Some("error validating audience \"migrated\": kind(Shared) is not supported in csi migration"),
        ),
        (
            json!({"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}),
            &["migrated"],
            Some(
                "error validating audience \"migrated\": failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/disk)",
            ),
        ),
        (
            json!({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}),
            &["migrated"],
            Some("error validating audience \"migrated\": csidriver.storage.k8s.io \"ebs.csi.aws.com\" not found"),
        ),
        (
            json!({"emptyDir": {}}),
            &["by-driver"],
            Some(
                "audience \"by-driver\" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience",
            ),
        ),
    ];
    let pods = at(DEFAULT, "pods");
    let path = at(&accounts, "a/token");
    for (volume, audiences, why) in cases {
        for world in [&open, &strict] {
            let spec = json!({"serviceAccountName": "a", "volumes": [merged(json!({"name": "v"}), &volume)]});
            let made = world.make("POST", &pods, &merged(pod("p", "n1"), &json!({"spec": spec}))).await;
            let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]});
            let body = json!({"spec": {"boundObjectRef": bound, "audiences": audiences}});
            let want = match why {
                Some(why) if std::ptr::eq(world, &strict) => refused(why),
                _ => Admitted,
            };
            world.check(NODE, &[Case("POST", path.clone(), body, want)]).await;
            world.make("DELETE", &format!("{pods}/p?gracePeriodSeconds=0"), &Json::Null).await;
        }
    }
    let uid = uid_of(&strict, &at(&pods, "theirs")).await;
    let token = |bound: Json, want| Case("POST", path.clone(), json!({"spec": {"boundObjectRef": bound}}), want);
    let to = |name: &str, uid: Json| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
    let unbound = || refused("node requested token not bound to a pod");
    strict
        .check(
            NODE,
            &[
                token(Json::Null, unbound()),
                token(json!({"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"}), unbound()),
                token(to("", json!("u")), unbound()),
                token(to("theirs", Json::Null), refused("node requested token with a pod binding without a uid")),
                token(to("nowhere", json!("u")), Code(404, "pod \"nowhere\" not found".into())),
                token(
                    to("theirs", json!("u")),
                    refused(
                        "the UID in the bound object reference (u) does not match the UID in record. The object might have been deleted and then recreated",
                    ),
                ),
                token(
                    to("theirs", uid),
                    refused("node requested token bound to a pod scheduled on a different node"),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn certificates_of_pods() {
    const GATE: &str = "PodCertificateRequest";
    let path = "/apis/certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests";
    let on = world(&[(GATE, true)]).await;
    let pods = at(DEFAULT, "pods");
    let account = on.make("POST", &at(DEFAULT, "serviceaccounts"), &json!({"metadata": {"name": "a"}})).await;
    let runs_as = json!({"spec": {"serviceAccountName": "a"}});
    let mine = on.make("POST", &pods, &merged(pod("mine", "n1"), &runs_as)).await;
    let theirs = on.make("POST", &pods, &merged(pod("theirs", "n2"), &runs_as)).await;
    let mirrors = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
    let mirror = on.make("POST", &pods, &merged(merged(pod("mirror", "n1"), &runs_as), &mirrors)).await;
    let of_none = json!({"spec": {"serviceAccountName": "none"}});
    let orphan = on.make("POST", &pods, &merged(pod("orphan", "n1"), &of_none)).await;
    let node = uid_of(&on, &at(NODES, "n1")).await;
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let (pod_uid, node_uid, account_uid) =
        (text(&mine["metadata"]["uid"]), text(&node), text(&account["metadata"]["uid"]));
    let asks = |change: Json, want| {
        let spec = json!({
            "signerName": "example.com/s", "podName": "mine", "podUID": pod_uid, "nodeName": "n1", "nodeUID": node_uid,
            "serviceAccountName": "a", "serviceAccountUID": account_uid,
            "pkixPublicKey": "AAAA", "proofOfPossession": "AAAA", "maxExpirationSeconds": 3600,
        });
        let body = json!({"metadata": {"generateName": "r-"}, "spec": merged(spec, &change)});
        Case("POST", path.to_owned(), body, want)
    };
    let no_status = |why: String| Code(500, why);
    on.check(
        NODE,
        &[
            // The key is none, which is found out after admission.
            asks(json!({}), Admitted),
            asks(
                json!({"nodeName": "n2"}),
                refused("PodCertificateRequest.Spec.NodeName=\"n2\", which is not the requesting node \"n1\""),
            ),
            asks(
                json!({"nodeUID": "u"}),
                no_status(format!(
                    "PodCertificateRequest for pod \"default/mine\" names node UID \"u\", inconsistent with the running node (\"{node_uid}\")"
                )),
            ),
            asks(
                json!({"podName": "nowhere"}),
                no_status(
                    "while retrieving pod \"default/nowhere\" named in the PodCertificateRequest: pod \"nowhere\" not found".into(),
                ),
            ),
            asks(
                json!({"podUID": "u"}),
                no_status(format!(
                    "PodCertificateRequest for pod \"default/mine\" contains pod UID (\"u\") which differs from running pod \"{pod_uid}\""
                )),
            ),
            asks(
                json!({"podName": "theirs", "podUID": theirs["metadata"]["uid"]}),
                refused("pod \"default/theirs\" is not running on node \"n1\" named in the PodCertificateRequest"),
            ),
            asks(
                json!({"serviceAccountName": "b"}),
                refused(
                    "PodCertificateRequest for pod \"default/mine\" contains serviceAccountName (\"b\") that differs from running pod (\"a\")",
                ),
            ),
            asks(
                json!({"podName": "mirror", "podUID": mirror["metadata"]["uid"]}),
                refused("pod \"default/mirror\" is a mirror pod"),
            ),
            asks(
                json!({"podName": "orphan", "podUID": orphan["metadata"]["uid"], "serviceAccountName": "none"}),
                no_status(
                    "while retrieving service account \"default/none\" named in the PodCertificateRequest: serviceaccount \"none\" not found".into(),
                ),
            ),
            asks(
                json!({"serviceAccountUID": "u"}),
                no_status(format!(
                    "PodCertificateRequest for pod \"default/mine\" names service account UID \"u\", which differs from the running service account (\"{account_uid}\")"
                )),
            ),
        ],
    )
    .await;
    let no_node = "while retrieving node \"n3\" named in the PodCertificateRequest: node \"n3\" not found";
    on.check("system:node:n3", &[asks(json!({"nodeName": "n3"}), no_status(no_node.into()))]).await;
    let keys = json!({"pkixPublicKey": null, "proofOfPossession": null, "stubPKCS10Request": DER_OF_N1});
    let Case(method, uri, body, _) = asks(keys, Passes);
    let whole = Case(method, uri, merged(body, &json!({"metadata": {"name": "r"}})), Passes);
    let stored = |method, part: &str, body, want| Case(method, format!("{}/r{part}", whole.1), body, want);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let changes = [
        stored("PATCH", "", label.clone(), refused("unexpected operation UPDATE")),
        stored("PATCH", "/status", label, refused("unexpected operation UPDATE")),
        stored("DELETE", "", Json::Null, refused("unexpected operation DELETE")),
    ];
    on.check(NODE, &[whole]).await;
    on.check(NODE, &changes).await;
    // The gate decides in the plugin, whatever is served.
    let off = World::start(Setting { plugins: &["NodeRestriction"], turned: &[], may: |_| false }).await;
    let (code, answer) = off.ask(NODE, "POST", path, &asks(json!({}), Passes).2).await;
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(code == 404 || message.ends_with("PodCertificateRequest feature gate is disabled"), "{code} {message}");
}
