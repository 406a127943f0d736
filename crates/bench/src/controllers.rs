//! Loads of the controllers in the process: a full namespace is deleted, and a tree of owners and dependents.

use crate::Result;
use crate::client::{Call, Connection};
use crate::process::Usage;
use crate::target::Target;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "bench-full";
/// Kinds of objects in the namespace.
const KINDS: usize = 20;
/// Objects in the middle of the tree.
const MIDDLE: usize = 100;
/// An end that does not come within this time is an error.
const PATIENCE: Duration = Duration::from_secs(300);
const DELETED: &[u8] = br#"{"type":"DELETED""#;

/// How the tree goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
}

/// How much is deleted, and by how many clients it was made.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    pub objects: usize,
    pub clients: usize,
}

/// From the deletion until nothing is left.
pub struct Deletion {
    pub elapsed: Duration,
    /// What the server had used before and after.
    pub usage: (Usage, Usage),
}

/// A namespace with so many objects is deleted and is gone: one operation.
pub async fn namespace(target: &Target, content: Content) -> Result<Deletion> {
    let mut connection = target.endpoint.connect().await?;
    fresh_namespace(&mut connection).await?;
    let calls = (0..content.objects).map(|index| {
        let (path, object) = of_kind(index);
        Call::post(path, object.to_string())
    });
    send_all(target, content.clients, calls.collect()).await?;
    let name = format!("/api/v1/namespaces/{NAMESPACE}");
    let watched = format!("/api/v1/namespaces?watch=1&fieldSelector=metadata.name={NAMESPACE}");
    let mut watch = Watch::open(&mut connection, watched).await?;
    let before = target.usage()?;
    let begin = Instant::now();
    expect(&mut connection, Call { method: "DELETE", ..Call::get(name) }, 200).await?;
    watch.until_deleted(1).await?;
    let elapsed = begin.elapsed();
    Ok(Deletion { elapsed, usage: (before, target.usage()?) })
}

/// One object owns some, each of which owns many; the first is deleted and all are gone: one operation.
pub async fn tree(target: &Target, content: Content, propagation: Propagation) -> Result<Deletion> {
    let mut connection = target.endpoint.connect().await?;
    fresh_namespace(&mut connection).await?;
    let root = create(&mut connection, &leases(), json!({"metadata": {"name": "root"}})).await?;
    let owner = |kind: &str, api_version: &str, object: &Value| {
        let meta = &object["metadata"];
        json!([{"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"],
            "controller": true, "blockOwnerDeletion": true}])
    };
    let mut owners = Vec::new();
    for index in 0..MIDDLE {
        let references = owner("Lease", "coordination.k8s.io/v1", &root);
        let object = json!({"metadata": {"name": format!("middle-{index}"), "ownerReferences": references}});
        let object = create(&mut connection, &of_core("secrets"), object).await?;
        owners.push(owner("Secret", "v1", &object));
    }
    let leaves = content.objects.saturating_sub(MIDDLE + 1);
    let calls = (0..leaves).map(|index| {
        let meta = json!({"name": format!("leaf-{index}"), "ownerReferences": owners[index % MIDDLE]});
        Call::post(of_core("configmaps"), json!({"metadata": meta, "data": {"key": "value"}}).to_string())
    });
    send_all(target, content.clients, calls.collect()).await?;

    let mut watches = Vec::new();
    for (path, count) in [(of_core("configmaps"), leaves), (of_core("secrets"), MIDDLE), (leases(), 1)] {
        // A connection each: they have flow control of their own.
        let mut connection = target.endpoint.connect().await?;
        watches.push((Watch::open(&mut connection, format!("{path}?watch=1")).await?, count));
    }
    let before = target.usage()?;
    let begin = Instant::now();
    let policy = match propagation {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
    };
    let delete = Call::get(format!("{}/root?propagationPolicy={policy}", leases()));
    expect(&mut connection, Call { method: "DELETE", ..delete }, 200).await?;
    let all =
        watches.into_iter().map(|(mut watch, count)| tokio::spawn(async move { watch.until_deleted(count).await }));
    for watching in all.collect::<Vec<_>>() {
        watching.await??;
    }
    let elapsed = begin.elapsed();
    Ok(Deletion { elapsed, usage: (before, target.usage()?) })
}

fn of_core(plural: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{plural}")
}

fn leases() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
}

/// An empty namespace, with the account without which no pod is made.
async fn fresh_namespace(connection: &mut Connection) -> Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    let watched = format!("/api/v1/namespaces?watch=1&fieldSelector=metadata.name={NAMESPACE}");
    let mut watch = Watch::open(connection, watched).await?;
    if connection.send(Call { method: "DELETE", ..Call::get(path) }).await?.0 == 200 {
        watch.until_deleted(1).await?;
    }
    create(connection, "/api/v1/namespaces", json!({"metadata": {"name": NAMESPACE}})).await?;
    let account = json!({"metadata": {"name": "default"}}).to_string();
    match connection.send(Call::post(of_core("serviceaccounts"), account)).await? {
        // The controller may have been quicker.
        (201 | 409, _) => Ok(()),
        (status, _) => Err(format!("serviceaccounts answered {status}").into()),
    }
}

/// The object of this number: kinds take turns.
fn of_kind(index: usize) -> (String, Value) {
    let name = format!("object-{index}");
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
    let selector = json!({"matchLabels": labels});
    let once = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}});
    let apps = json!({"selector": selector, "template": template});
    let group = |group: &str, plural: &str| format!("/apis/{group}/v1/namespaces/{NAMESPACE}/{plural}");
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    let (path, mut object) = match index % KINDS {
        0 => (of_core("configmaps"), json!({"data": {"key": "value"}})),
        1 => (of_core("secrets"), json!({"stringData": {"key": "value"}})),
        2 => (of_core("serviceaccounts"), json!({})),
        3 => (of_core("services"), json!({"spec": {"clusterIP": "None", "selector": labels}})),
        4 => (of_core("endpoints"), json!({})),
        5 => (of_core("pods"), json!({"spec": template["spec"]})),
        6 => (of_core("replicationcontrollers"), json!({"spec": {"selector": labels, "template": template}})),
        7 => (of_core("podtemplates"), json!({"template": template})),
        8 => (leases(), json!({})),
        9 => (group("rbac.authorization.k8s.io", "roles"), json!({"rules": []})),
        10 => (group("rbac.authorization.k8s.io", "rolebindings"), json!({"roleRef": role})),
        11 => (group("apps", "deployments"), json!({"spec": apps})),
        12 => (group("apps", "replicasets"), json!({"spec": apps})),
        13 => (group("apps", "daemonsets"), json!({"spec": apps})),
        14 => (group("apps", "statefulsets"), json!({"spec": apps})),
        15 => (group("batch", "jobs"), json!({"spec": {"template": once}})),
        16 => {
            let job = json!({"spec": {"template": once}});
            (group("batch", "cronjobs"), json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": job}}))
        }
        17 => {
            let backend = json!({"service": {"name": name, "port": {"number": 80}}});
            (group("networking.k8s.io", "ingresses"), json!({"spec": {"defaultBackend": backend}}))
        }
        18 => (group("networking.k8s.io", "networkpolicies"), json!({"spec": {"podSelector": {}}})),
        _ => (group("policy", "poddisruptionbudgets"), json!({"spec": {"selector": selector}})),
    };
    object["metadata"] = json!({"name": name});
    (path, object)
}

/// Sends calls, so many at a time; each must create something.
async fn send_all(target: &Target, clients: usize, calls: Vec<Call>) -> Result<()> {
    let calls: Arc<Vec<std::sync::Mutex<Option<Call>>>> =
        Arc::new(calls.into_iter().map(|call| std::sync::Mutex::new(Some(call))).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let (calls, next) = (calls.clone(), next.clone());
        let mut connection = target.endpoint.connect().await?;
        tasks.push(tokio::spawn(async move {
            while let Some(slot) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                let call = slot.lock().expect("no panic under this lock").take();
                if let Some(call) = call {
                    expect(&mut connection, call, 201).await?;
                }
            }
            Result::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn expect(connection: &mut Connection, call: Call, wanted: u16) -> Result<()> {
    let path = call.path.clone();
    match connection.send(call).await? {
        (status, _) if status == wanted => Ok(()),
        (status, _) => Err(format!("{path} answered {status}").into()),
    }
}

async fn create(connection: &mut Connection, path: &str, object: Value) -> Result<Value> {
    let response = connection.open(Call::post(path.to_owned(), object.to_string())).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    match status.as_u16() {
        201 => Ok(serde_json::from_slice(&body)?),
        status => Err(format!("{path} answered {status}: {}", String::from_utf8_lossy(&body)).into()),
    }
}

/// Counts what is deleted.
struct Watch {
    body: Incoming,
    /// Whether the next byte begins an event.
    fresh: bool,
    pending: Vec<u8>,
}

impl Watch {
    async fn open(connection: &mut Connection, path: String) -> Result<Watch> {
        let response = connection.open(Call::get(path)).await?;
        match response.status().as_u16() {
            200 => Ok(Watch { body: response.into_body(), fresh: true, pending: Vec::new() }),
            status => Err(format!("a watch answered {status}").into()),
        }
    }

    async fn until_deleted(&mut self, count: usize) -> Result<()> {
        let mut seen = 0;
        while seen < count {
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.map_err(|_| format!("{seen} of {count} were deleted"))?.ok_or("the watch ended")??;
            let Some(data) = frame.data_ref() else { continue };
            seen += self.deletions(data);
        }
        Ok(())
    }

    fn deletions(&mut self, data: &[u8]) -> usize {
        let mut count = 0;
        for &byte in data {
            if byte == b'\n' {
                (self.fresh, self.pending) = (true, Vec::new());
            } else if self.fresh {
                self.pending.push(byte);
                if self.pending.len() == DELETED.len() {
                    count += usize::from(self.pending == DELETED);
                    self.fresh = false;
                }
            }
        }
        count
    }
}
