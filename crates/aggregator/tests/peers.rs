//! Two servers of a cluster that do not serve the same: what one lacks, the other is asked for.

use crate::support::{Apis, FrontProxy, behind, eventually, value};
use futures::future::BoxFuture;
use kubelith_aggregator::{Locate, PeerConfig};
use kubelith_meta::Value;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::prometheus::TextEncoder;
use kubelith_server::testing::{ADMIN_TOKEN, Place, TestServer, request};
use std::sync::Arc;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// Where the other one is.
struct There(String);

impl Locate for There {
    fn address<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<String, String>> {
        let known = if server == "other" { self.0.clone() } else { String::new() };
        Box::pin(std::future::ready(Ok(known)))
    }
}

/// As a server of its own id keeps it.
fn lease(id: &str) -> String {
    format!(
        r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{id}",
        "labels":{{"apiserver.kubernetes.io/identity":"kube-apiserver"}}}},"spec":{{"holderIdentity":"{id}_1"}}}}"#
    )
}

async fn send(server: &TestServer, method: &str, path: &str, body: &str) -> u16 {
    let mut sent = request(method, path, ADMIN_TOKEN);
    sent.headers_mut().insert("content-type", "application/json".parse().unwrap());
    *sent.body_mut() = body.to_owned().into();
    server.send(sent).await.status
}

/// The groups in aggregated discovery.
async fn groups(server: &TestServer, profile: &str) -> Vec<String> {
    let mut asked = request("GET", "/apis", ADMIN_TOKEN);
    let accept = format!("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList{profile}");
    asked.headers_mut().insert("accept", accept.parse().unwrap());
    let document = value(&server.send(asked).await);
    let items = document.get("items").and_then(Value::as_array).unwrap();
    items.iter().map(|group| group.str_at(&["metadata", "name"]).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_other_serves_is_asked_for_there() {
    let front_proxy = FrontProxy::new();
    let (all, most) = (Apis::open(&[], |_| false).await, Apis::open(&[("batch/v1", "false")], |_| false).await);
    let place = Place { names: &["kubernetes.default.svc"], ..Place::default() };
    let other = behind(&front_proxy, place, |builder| builder.delegate(all.alone())).await;
    let registry = Registry::new();
    let peers = |config: PeerConfig| PeerConfig {
        locate: Arc::new(There(format!("localhost:{}", other.address.port()))),
        certificate: front_proxy.certificate(),
        authorities: other.pki_dir().join("ca.crt"),
        ..config
    };
    let own = TestServer::start(|builder| builder.delegate(most.beside(peers, registry.clone()))).await;
    assert_eq!(own.get(JOBS, ADMIN_TOKEN).await.status, 404, "nobody is there yet");

    assert_eq!(send(&own, "POST", LEASES, &lease("own")).await, 201);
    assert_eq!(send(&own, "POST", LEASES, &lease("other")).await, 201);
    eventually("the other to be asked", || async { own.get(JOBS, ADMIN_TOKEN).await.status == 200 }).await;
    let job = r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{
        "restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}"#;
    assert_eq!(send(&own, "POST", &format!("{JOBS}?fieldManager=me"), job).await, 201);
    let listed = value(&own.get(JOBS, ADMIN_TOKEN).await);
    assert_eq!(listed.get("items").and_then(Value::as_array).map(<[_]>::len), Some(1));
    assert_eq!(own.get("/api/v1/pods", ADMIN_TOKEN).await.status, 200, "what this server has it answers itself");

    let mut passed_on = request("GET", JOBS, ADMIN_TOKEN);
    passed_on.headers_mut().insert("x-kubernetes-peer-proxied", "true".parse().unwrap());
    assert_eq!(own.send(passed_on).await.status, 404, "a request is passed on once");

    let (joined, alone) = (groups(&own, "").await, groups(&own, ";profile=nopeer").await);
    assert!(joined.contains(&"batch".to_owned()) && !alone.contains(&"batch".to_owned()), "{joined:?} {alone:?}");
    assert_eq!(joined.len(), alone.len() + 1);

    assert_eq!(send(&own, "DELETE", &format!("{LEASES}/other"), "").await, 200);
    eventually("the other to be forgotten", || async { own.get(JOBS, ADMIN_TOKEN).await.status == 404 }).await;
    assert_eq!(groups(&own, "").await, alone);
    let counted = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let line = "apiserver_rerouted_request_total{code=\"201\",group=\"batch\",resource=\"jobs\",version=\"v1\"} 1";
    assert!(counted.lines().any(|counted| counted == line), "{counted}");
}
