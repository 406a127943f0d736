//! What patches and applies of an 8 KB pod cost from request to response, over the memory store:
//! `cargo bench -p kubelith-kube --bench patch`.

#[path = "../tests/support/mod.rs"]
mod support;

use http::Method;
use std::time::Instant;
use support::Server;

const URI: &str = "/api/v1/namespaces/default/pods/p";
const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const RUNS: usize = 2000;

fn pod(image: &str) -> String {
    let container = |i: usize| {
        let env: Vec<String> =
            (0..12).map(|j| format!(r#"{{"name":"VARIABLE_{j}","value":"value-{i}-{j}"}}"#)).collect();
        let mounts: Vec<String> =
            (0..4).map(|j| format!(r#"{{"name":"volume-{j}","mountPath":"/var/lib/data/{j}"}}"#)).collect();
        let probe = r#"{"httpGet":{"path":"/healthz","port":8080},"periodSeconds":10}"#;
        format!(
            r#"{{"name":"container-{i}","image":"{image}","env":[{}],"volumeMounts":[{}],"livenessProbe":{probe},
                "readinessProbe":{probe},"ports":[{{"containerPort":808{i},"name":"p{i}"}}],
                "resources":{{"limits":{{"cpu":"500m","memory":"128Mi"}},"requests":{{"cpu":"500m","memory":"128Mi"}}}}}}"#,
            env.join(","),
            mounts.join(",")
        )
    };
    let containers: Vec<String> = (0..4).map(container).collect();
    let volumes: Vec<String> = (0..4).map(|j| format!(r#"{{"name":"volume-{j}","emptyDir":{{}}}}"#)).collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","labels":{{"app":"x"}}}},"spec":{{"containers":[{}],
            "volumes":[{}]}}}}"#,
        containers.join(","),
        volumes.join(",")
    )
}

/// The best of many runs: what it costs on a processor of one's own.
async fn measure(name: &str, server: &Server, kind: (Method, &str, &str), body: impl Fn(usize) -> String) {
    let (method, uri, content_type) = kind;
    let mut best = f64::MAX;
    for i in 0..RUNS {
        let body = body(i);
        let start = Instant::now();
        let (code, answer) = server.send_raw(method.clone(), uri, content_type, &body).await;
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
        assert_eq!(code, 200, "{}", String::from_utf8_lossy(&answer));
    }
    println!("{name:<40} {best:>8.1} µs");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = Server::start().await;
        let apply = format!("{URI}?fieldManager=m&force=true");
        let (code, made) = server.send_raw(Method::PATCH, &apply, APPLY, &pod("image:0")).await;
        assert_eq!(code, 201, "{}", String::from_utf8_lossy(&made));
        println!("pod: {} bytes of JSON with managedFields", made.len());

        measure("get", &server, (Method::GET, URI, ""), |_| String::new()).await;
        measure("apply, nothing changes", &server, (Method::PATCH, &apply, APPLY), |_| pod("image:0")).await;
        measure("apply, images change", &server, (Method::PATCH, &apply, APPLY), |i| pod(&format!("image:{}", i + 1)))
            .await;
        let image = |i: usize| format!(r#"{{"spec":{{"containers":[{{"name":"container-2","image":"other:{i}"}}]}}}}"#);
        measure("strategic merge patch, an image", &server, (Method::PATCH, URI, STRATEGIC), image).await;
        let label = |i: usize| format!(r#"{{"metadata":{{"labels":{{"n":"{i}"}}}}}}"#);
        measure("merge patch, a label", &server, (Method::PATCH, URI, MERGE), label).await;
    });
}
