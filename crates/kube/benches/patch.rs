//! What patches and applies of an 8 KB pod cost from request to response, over the memory store and with the server's
//! allocator: `cargo bench -p kubelith-kube --bench patch`. A word behind `--` picks cases by their names.
//!
//! There are two pods: one of 8 KB as clients see it, and one of 6 KB without its managedFields.

#[path = "../tests/support/mod.rs"]
mod support;

use http::Method;
use std::time::Instant;
use support::Server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const RUNS: usize = 2000;

/// How large a pod is.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    containers: usize,
    variables: usize,
}

const SIZES: [Size; 2] =
    [Size { name: "small", containers: 2, variables: 18 }, Size { name: "large", containers: 4, variables: 12 }];

fn pod(size: Size, image: &str) -> String {
    let container = |i: usize| {
        let env: Vec<String> =
            (0..size.variables).map(|j| format!(r#"{{"name":"VARIABLE_{j}","value":"value-{i}-{j}"}}"#)).collect();
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
    let containers: Vec<String> = (0..size.containers).map(container).collect();
    let volumes: Vec<String> = (0..4).map(|j| format!(r#"{{"name":"volume-{j}","emptyDir":{{}}}}"#)).collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{{"app":"x"}}}},"spec":{{"containers":[{}],
            "volumes":[{}]}}}}"#,
        size.name,
        containers.join(","),
        volumes.join(",")
    )
}

/// The best of many runs: what it costs on a processor of one's own.
async fn measure(name: &str, server: &Server, kind: (Method, &str, &str), body: impl Fn(usize) -> String) {
    if !std::env::args().skip(1).filter(|word| !word.starts_with("--")).all(|word| name.contains(&word)) {
        return;
    }
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

async fn measure_pod(server: &Server, size: Size) {
    let uri = format!("/api/v1/namespaces/default/pods/{}", size.name);
    let apply = format!("{uri}?fieldManager=m&force=true");
    let name = |case: &str| format!("{}: {case}", size.name);
    let (code, made) = server.send_raw(Method::PATCH, &apply, APPLY, &pod(size, "image:0")).await;
    assert_eq!(code, 201, "{}", String::from_utf8_lossy(&made));
    let all = made.len();
    let owned = String::from_utf8_lossy(&made);
    let owned = owned.split_once("\"managedFields\":").and_then(|(_, rest)| rest.split_once("],\"name\""));
    println!(
        "{} pod: {all} bytes of JSON, {} of them managedFields",
        size.name,
        owned.map_or(0, |(list, _)| list.len())
    );

    measure(&name("get"), server, (Method::GET, &uri, ""), |_| String::new()).await;
    measure(&name("apply, nothing changes"), server, (Method::PATCH, &apply, APPLY), |_| pod(size, "image:0")).await;
    let images = |i: usize| pod(size, &format!("image:{}", i + 1));
    measure(&name("apply, images change"), server, (Method::PATCH, &apply, APPLY), images).await;
    let image = |i: usize| format!(r#"{{"spec":{{"containers":[{{"name":"container-1","image":"other:{i}"}}]}}}}"#);
    measure(&name("strategic merge patch, an image"), server, (Method::PATCH, &uri, STRATEGIC), image).await;
    let label = |i: usize| format!(r#"{{"metadata":{{"labels":{{"n":"{i}"}}}}}}"#);
    measure(&name("merge patch, a label"), server, (Method::PATCH, &uri, MERGE), label).await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = Server::start().await;
        for size in SIZES {
            measure_pod(&server, size).await;
        }
    });
}
