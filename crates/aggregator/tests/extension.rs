//! A real extension API server behind the aggregator: our own server with one group on.

use crate::support::raw::{RawServer, full};
use crate::support::{Cluster, api_services, eventually, extension, insecure, value};
use base64::Engine;
use kubelith_meta::Value;
use kubelith_server::loopback::{PatchType, ResourceRef};
use kubelith_server::testing::ADMIN_TOKEN;

const GROUP: &str = "storagemigration.k8s.io";
const COLLECTION: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";

fn migration(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"storagemigration.k8s.io/v1beta1","kind":"StorageVersionMigration",
        "metadata":{{"name":"{name}"}},"spec":{{"resource":{{"group":"apps","resource":"deployments"}}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_registered_discovered_and_used() {
    let cluster = Cluster::start().await;
    let server = extension(&cluster.front_proxy, "storagemigration.k8s.io/v1beta1", 0).await;
    let ca = std::fs::read(server.pki_dir().join("ca.crt")).unwrap();
    let bundle = base64::engine::general_purpose::STANDARD.encode(ca);
    cluster.register(GROUP, "v1beta1", server.address.port(), ("caBundle", bundle.into())).await;
    cluster.until_available("v1beta1.storagemigration.k8s.io", "True").await;
    let (_, reason, message) = cluster.available("v1beta1.storagemigration.k8s.io").await;
    assert_eq!((reason.as_str(), message.as_str()), ("Passed", "all checks passed"));

    discovery_knows_it(&cluster).await;
    openapi_knows_it(&cluster).await;
    objects_live_and_die(&cluster).await;

    let deleted =
        cluster.send("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.storagemigration.k8s.io", "");
    assert_eq!(deleted.await.status, 200);
    eventually("the route to vanish", || async { cluster.get(COLLECTION).await.status == 404 }).await;
    eventually("discovery to forget it", || async { !aggregated(&cluster).await.contains(GROUP) }).await;
    eventually("OpenAPI to forget it", || async {
        !cluster.get("/openapi/v3").await.text().contains(GROUP)
            && !cluster.get("/openapi/v2").await.text().contains(COLLECTION)
    })
    .await;
    assert!(!cluster.get("/apis").await.text().contains(GROUP));
}

async fn aggregated(cluster: &Cluster) -> String {
    let request = http::Request::builder()
        .uri("/apis")
        .header("host", "localhost")
        .header("authorization", format!("Bearer {ADMIN_TOKEN}"))
        .header("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        .body(Default::default())
        .unwrap();
    cluster.server.send(request).await.text().to_owned()
}

async fn discovery_knows_it(cluster: &Cluster) {
    eventually("its resources in aggregated discovery", || async {
        aggregated(cluster).await.contains("storageversionmigrations")
    })
    .await;
    let document = kubelith_codec::json::parse(aggregated(cluster).await.as_bytes()).unwrap();
    let groups = document.at(&["items"]).unwrap().as_array().unwrap();
    let group = groups.iter().find(|g| g.str_at(&["metadata", "name"]) == GROUP).unwrap();
    let version = &group.at(&["versions"]).unwrap().as_array().unwrap()[0];
    assert_eq!((version.str_at(&["version"]), version.str_at(&["freshness"])), ("v1beta1", "Current"));

    let list = value(&cluster.get("/apis").await);
    let names: Vec<&str> =
        list.at(&["groups"]).unwrap().as_array().unwrap().iter().map(|g| g.str_at(&["name"])).collect();
    assert_eq!((names.first(), names.last()), (Some(&"apiregistration.k8s.io"), Some(&GROUP)));
    let group = value(&cluster.get("/apis/storagemigration.k8s.io").await);
    assert_eq!(group.str_at(&["preferredVersion", "groupVersion"]), "storagemigration.k8s.io/v1beta1");
    let resources = value(&cluster.get("/apis/storagemigration.k8s.io/v1beta1").await);
    assert_eq!(resources.str_at(&["kind"]), "APIResourceList");
}

async fn openapi_knows_it(cluster: &Cluster) {
    let listed = || async { cluster.get("/openapi/v3").await.text().contains("apis/storagemigration.k8s.io/v1beta1") };
    eventually("its documents in the index of OpenAPI", listed).await;
    let document = cluster.get("/openapi/v3/apis/storagemigration.k8s.io/v1beta1").await;
    assert_eq!(document.status, 200);
    assert!(document.text().contains("io.k8s.api.storagemigration.v1beta1.StorageVersionMigration"));
    let joined = || async { cluster.get("/openapi/v2").await.text().contains(COLLECTION) };
    eventually("its paths in the joined document", joined).await;
    let document = value(&cluster.get("/openapi/v2").await);
    let definitions = document.at(&["definitions"]).and_then(Value::as_object).unwrap();
    assert!(definitions.contains_key("io.k8s.api.storagemigration.v1beta1.StorageVersionMigration"));
    assert!(definitions.contains_key("io.k8s.api.core.v1.Pod"));
    // Both servers describe metadata in the same words, so it is there once.
    assert!(!definitions.contains_key("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2"));
}

async fn objects_live_and_die(cluster: &Cluster) {
    let resource = kubelith_meta::GroupVersionResource::new(GROUP, "v1beta1", "storageversionmigrations");
    let collection = ResourceRef::new(&resource);
    let mut events = cluster.client.watch(&collection).await.unwrap();
    let made = cluster.send("POST", COLLECTION, &migration("a")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let again = cluster.send("POST", COLLECTION, &migration("a")).await;
    assert_eq!((again.status, value(&again).str_at(&["reason"])), (409, "AlreadyExists"));
    let got = cluster.get(&format!("{COLLECTION}/a")).await;
    assert_eq!(value(&got), value(&made));
    let patch = kubelith_codec::json::parse(br#"{"metadata":{"labels":{"x":"y"}}}"#).unwrap();
    let patched = cluster.client.patch(&ResourceRef::new(&resource).name("a"), PatchType::Merge, &patch).await.unwrap();
    assert_eq!(patched.str_at(&["metadata", "labels", "x"]), "y");
    let list = value(&cluster.get(&format!("{COLLECTION}?labelSelector=x%3Dy")).await);
    assert_eq!(list.at(&["items"]).unwrap().as_array().unwrap().len(), 1);
    assert_eq!(cluster.send("DELETE", &format!("{COLLECTION}/a"), "").await.status, 200);
    assert_eq!(cluster.get(&format!("{COLLECTION}/a")).await.status, 404);
    for want in ["Added", "Modified", "Deleted"] {
        let event = events.next().await.unwrap().unwrap();
        assert_eq!(format!("{:?}", event.kind), want);
        assert_eq!(event.object.str_at(&["metadata", "name"]), "a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_openapi_v2_alone_is_described_in_v3_too() {
    const V2: &str = r##"{"swagger":"2.0","info":{"title":"Old","version":"1"},
        "paths":{"/apis/old.test/v1/things":{"get":{"produces":["application/json"],
            "responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/test.old.v1.Thing"}}}}}},
        "definitions":{"test.old.v1.Thing":{"type":"object","description":"A thing of old."}}}"##;
    let server = RawServer::http(|request: http::Request<hyper::body::Incoming>| async move {
        let mut response = http::Response::new(full(if request.uri().path() == "/openapi/v2" { V2 } else { "{}" }));
        if request.uri().path() == "/openapi/v3" {
            *response.status_mut() = http::StatusCode::NOT_FOUND;
        }
        response
    })
    .await;
    let cluster = Cluster::start().await;
    cluster.register("old.test", "v1", server.port, insecure()).await;
    let listed = || async { cluster.get("/openapi/v3").await.text().contains("/openapi/v3/apis/old.test/v1?hash=") };
    eventually("a document of version 3", listed).await;
    let document = value(&cluster.get("/openapi/v3/apis/old.test/v1").await);
    assert_eq!(document.str_at(&["openapi"]), "3.0.0");
    assert_eq!(document.str_at(&["components", "schemas", "test.old.v1.Thing", "description"]), "A thing of old.");
    let answer = ["paths", "/apis/old.test/v1/things", "get", "responses", "200", "content", "application/json"];
    let schema = document.at(&answer).and_then(|content| content.get("schema")).unwrap();
    assert_eq!(schema.str_at(&["$ref"]), "#/components/schemas/test.old.v1.Thing");
    let removed = cluster.send("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.old.test", "");
    assert_eq!(removed.await.status, 200);
    eventually("it to be forgotten", || async { cluster.get("/openapi/v3/apis/old.test/v1").await.status == 404 })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_death_and_return_are_noticed() {
    let cluster = Cluster::start().await;
    let server = extension(&cluster.front_proxy, "storagemigration.k8s.io/v1beta1", 0).await;
    let port = server.address.port();
    cluster.register(GROUP, "v1beta1", port, insecure()).await;
    let name = "v1beta1.storagemigration.k8s.io";
    cluster.until_available(name, "True").await;
    server.stop().await.unwrap();
    let dead = cluster.get(COLLECTION).await;
    assert_eq!(dead.status, 503);
    assert!(dead.text().starts_with("error trying to reach service: dial tcp"), "{}", dead.text());
    touch(&cluster, name).await;
    cluster.until_available(name, "False").await;
    let (_, reason, message) = cluster.available(name).await;
    assert_eq!(reason, "FailedDiscoveryCheck");
    let start =
        format!("failing or missing response from https://localhost:{port}/apis/storagemigration.k8s.io/v1beta1: Get ");
    assert!(message.starts_with(&start) && message.ends_with("connect: connection refused"), "{message}");
    eventually("the group to be stale", || async { aggregated(&cluster).await.contains("\"Stale\"") }).await;

    let _server = extension(&cluster.front_proxy, "storagemigration.k8s.io/v1beta1", port).await;
    touch(&cluster, name).await;
    cluster.until_available(name, "True").await;
    assert_eq!(cluster.get(COLLECTION).await.status, 200);
}

/// Any change of an APIService makes the controllers look at its server; else they would in some seconds.
async fn touch(cluster: &Cluster, name: &str) {
    let patch = Value::from([(
        "metadata",
        Value::from([(
            "annotations",
            Value::from([("touched", kubelith_meta::random::uid(kubelith_meta::random::random_bits))]),
        )]),
    )]);
    let resource = api_services();
    cluster.client.patch(&ResourceRef::new(&resource).name(name), PatchType::Merge, &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_must_be_right() {
    let cluster = Cluster::start().await;
    let server = extension(&cluster.front_proxy, "storagemigration.k8s.io/v1beta1", 0).await;
    // The certificate of somebody else.
    let other = base64::engine::general_purpose::STANDARD.encode(cluster.front_proxy.ca());
    cluster.register(GROUP, "v1beta1", server.address.port(), ("caBundle", other.into())).await;
    let name = "v1beta1.storagemigration.k8s.io";
    // The service may not have been seen yet when the registration is.
    let (reason, message) = loop {
        cluster.until_available(name, "False").await;
        let (_, reason, message) = cluster.available(name).await;
        if reason != "ServiceNotFound" {
            break (reason, message);
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(reason, "FailedDiscoveryCheck");
    let end = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message.ends_with(end), "{message}");
    // Its own, as after a rotation.
    let ca = std::fs::read(server.pki_dir().join("ca.crt")).unwrap();
    let bundle = base64::engine::general_purpose::STANDARD.encode(ca);
    let patch = Value::from([("spec", Value::from([("caBundle", Value::from(bundle))]))]);
    let resource = api_services();
    cluster.client.patch(&ResourceRef::new(&resource).name(name), PatchType::Merge, &patch).await.unwrap();
    cluster.until_available(name, "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_and_their_ports_must_be_there() {
    let cluster = Cluster::start().await;
    let object = kubelith_codec::json::parse(
        br#"{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.a.test"},
        "spec":{"group":"a.test","version":"v1","groupPriorityMinimum":1000,"versionPriority":15,
        "insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"x","port":8443}}}"#,
    )
    .unwrap();
    cluster.client.create(&ResourceRef::new(&api_services()), &object).await.unwrap();
    let says = |want: &'static str, text: &'static str| {
        let cluster = &cluster;
        async move {
            eventually(want, || async { cluster.available("v1.a.test").await.1 == want }).await;
            assert_eq!(cluster.available("v1.a.test").await.2, text);
        }
    };
    says("ServiceNotFound", "service/x in \"default\" is not present").await;
    let service = |port: u16| {
        format!(
            r#"{{"metadata":{{"name":"x"}},"spec":{{"type":"ClusterIP","clusterIP":"None","clusterIPs":["None"],
            "ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack",
            "ports":[{{"name":"p","port":{port},"targetPort":443,"protocol":"TCP"}}]}}}}"#
        )
    };
    assert_eq!(cluster.send("POST", "/api/v1/namespaces/default/services", &service(443)).await.status, 201);
    says("ServicePortError", "service/x in \"default\" is not listening on port 8443").await;
    assert_eq!(cluster.send("PUT", "/api/v1/namespaces/default/services/x", &service(8443)).await.status, 200);
    says("EndpointsNotFound", "cannot find endpointslices for service/x in \"default\"").await;
    let slice = r#"{"metadata":{"name":"x-1","labels":{"kubernetes.io/service-name":"x"}},"addressType":"IPv4",
        "endpoints":[{"addresses":["192.0.2.1"],"conditions":{"ready":false}}],"ports":[{"name":"p","port":8443}]}"#;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(cluster.send("POST", slices, slice).await.status, 201);
    let text = "endpointslices for service/x in \"default\" have no addresses with port name \"p\"";
    says("MissingEndpoints", text).await;
}
