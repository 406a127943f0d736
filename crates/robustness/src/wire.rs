//! Calls as requests, and answers as what is recorded of them.

use crate::history::{Call, Change, Freshness, Moment, Notice, Outcome, Page, Revision, Version};
use kubelith_conformance::http::{Address, Client, Request};
use serde_json::{Value, json};
use std::time::Duration;

pub const TOKEN: &str = "robust-token";
/// Of somebody without priority.
pub const STORM_TOKEN: &str = "storm-token";
/// Of another one, who fills the memory.
pub const FILLER_TOKEN: &str = "filler-token";
/// Of a controller that holds a lease.
pub const LEADER_TOKEN: &str = "leader-token";
pub const NAMESPACE: &str = "robust";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Longer than any pause that is injected; a request that has no answer by then is one without an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// A resource that is written, read and watched.
#[derive(Debug)]
pub struct Resource {
    api_version: &'static str,
    kind: &'static str,
    path: &'static str,
}

/// One that is built in, and one of a definition: they are served by the same handlers, but come about differently.
pub const RESOURCES: [Resource; 2] = [
    Resource { api_version: "v1", kind: "ConfigMap", path: "/api/v1/namespaces/robust/configmaps" },
    Resource {
        api_version: "robust.example.com/v1",
        kind: "Mark",
        path: "/apis/robust.example.com/v1/namespaces/robust/marks",
    },
];

/// A connection that sends nothing twice by itself.
pub struct Api {
    client: Client,
    token: &'static str,
    pub port: u16,
    /// When its connection was made, if there is one.
    pub connected: Option<Moment>,
}

/// Status and body.
pub type Answer = (u16, Value);

impl Api {
    /// As the administrator.
    pub fn new(port: u16) -> Api {
        Api::of(port, TOKEN)
    }

    /// As whose token it is.
    pub fn of(port: u16, token: &'static str) -> Api {
        Api { client: Client::new(address(port)).with_timeout(PATIENCE), token, port, connected: None }
    }

    /// `None` if there was no answer: whether it was done is not known.
    pub fn send(&mut self, method: &str, path: &str, content_type: &str, body: Option<&Value>) -> Option<Answer> {
        let Ok(response) = self.client.send_once(&request_as(self.token, method, path, content_type, body)) else {
            self.connected = None;
            return None;
        };
        Some((response.status, serde_json::from_slice(&response.body).unwrap_or_default()))
    }

    pub fn get(&mut self, path: &str) -> Option<Answer> {
        self.send("GET", path, "", None)
    }
}

pub fn address(port: u16) -> Address {
    Address::parse(&format!("https://127.0.0.1:{port}")).expect("a loopback address")
}

/// As the administrator.
pub fn request(method: &str, path: &str, content_type: &str, body: Option<&Value>) -> Request {
    request_as(TOKEN, method, path, content_type, body)
}

pub fn request_as(token: &str, method: &str, path: &str, content_type: &str, body: Option<&Value>) -> Request {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut headers =
        vec![header("Authorization", &format!("Bearer {token}")), header("User-Agent", "kubelith-robustness")];
    if !content_type.is_empty() {
        headers.push(header("Content-Type", content_type));
    }
    Request { method: method.into(), path: path.into(), headers, body: body.map(|body| body.to_string().into_bytes()) }
}

/// What a write puts into an object besides its mark.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    pub color: u8,
    /// Bytes that make commits and events larger.
    pub padding: usize,
}

const JSON: &str = "application/json";

/// Sends it, with all its pages, and says what came of it.
pub fn perform(api: &mut Api, resource: usize, call: &Call, content: Content, limit: Option<usize>) -> Outcome {
    let Resource { path, .. } = RESOURCES[resource];
    let one = |name: &str| format!("{path}/{name}");
    let answer = match call {
        Call::Create { name, mark } => {
            api.send("POST", path, JSON, Some(&object(resource, name, *mark, content, None)))
        }
        Call::Update { name, mark, after } => {
            api.send("PUT", &one(name), JSON, Some(&object(resource, name, *mark, content, Some(*after))))
        }
        Call::Patch { name, mark, after } => {
            let mut patch = json!({"metadata": metadata(name, *mark, content, *after)});
            patch["metadata"]["name"].take();
            if let Some(metadata) = patch["metadata"].as_object_mut() {
                metadata.remove("name");
            }
            api.send("PATCH", &one(name), "application/merge-patch+json", Some(&patch))
        }
        Call::Apply { name, mark } => {
            let path = format!("{}?fieldManager=robust&force=true", one(name));
            let applied = object(resource, name, *mark, content, None);
            api.send("PATCH", &path, "application/apply-patch+yaml", Some(&applied))
        }
        Call::Delete { name, after } => {
            let options = after.map(|after| json!({"preconditions": {"resourceVersion": after.to_string()}}));
            api.send("DELETE", &one(name), if options.is_some() { JSON } else { "" }, options.as_ref())
        }
        Call::Get { name, fresh } => api.get(&format!("{}?{}", one(name), query(*fresh))),
        Call::List { fresh, color } => return list(api, path, *fresh, *color, limit),
    };
    let Some((code, body)) = answer else { return Outcome::Unknown };
    match (code, call) {
        (200 | 202, Call::Delete { .. }) => match deleted_uid(&body) {
            Some(uid) => Outcome::Deleted { uid },
            None => Outcome::Unknown,
        },
        (200 | 201, _) => version(&body).map_or(Outcome::Unknown, Outcome::Object),
        (400..=499, _) => Outcome::Refused(code),
        _ => Outcome::Unknown,
    }
}

/// A Status has it in its details; some resources answer with the object.
fn deleted_uid(body: &Value) -> Option<String> {
    let uid = body["details"]["uid"].as_str().or_else(|| body["metadata"]["uid"].as_str());
    uid.map(str::to_owned)
}

fn query(fresh: Freshness) -> String {
    match fresh {
        Freshness::Consistent => String::new(),
        Freshness::Any => "resourceVersion=0".to_owned(),
        Freshness::NotOlderThan(revision) => format!("resourceVersion={revision}"),
        Freshness::Exact(revision) => format!("resourceVersion={revision}&resourceVersionMatch=Exact"),
    }
}

fn list(api: &mut Api, path: &str, fresh: Freshness, color: Option<u8>, limit: Option<usize>) -> Outcome {
    let mut first = format!("{path}?{}", query(fresh));
    if let Freshness::NotOlderThan(_) = fresh {
        first.push_str("&resourceVersionMatch=NotOlderThan");
    }
    let mut common = String::new();
    common.extend(color.map(|color| format!("&labelSelector=color%3Dc{color}")));
    common.extend(limit.map(|limit| format!("&limit={limit}")));
    let mut next = format!("{first}{common}");
    let mut pages = Vec::new();
    loop {
        let Some((code, body)) = api.get(&next) else { return Outcome::Unknown };
        if code != 200 {
            return if matches!(code, 400..=499) { Outcome::Refused(code) } else { Outcome::Unknown };
        }
        let items: Option<Vec<Version>> =
            body["items"].as_array().map(|items| items.iter().filter_map(version).collect());
        let Some((revision, items)) = revision(&body).zip(items) else { return Outcome::Unknown };
        pages.push(Page { revision, items });
        match body["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("{path}?continue={token}{common}"),
            None => return Outcome::Pages(pages),
        }
    }
}

fn metadata(name: &str, mark: u64, content: Content, after: Option<Revision>) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {"color": format!("c{}", content.color)},
        "annotations": {"mark": mark.to_string(), "padding": "x".repeat(content.padding)},
    });
    if let Some(after) = after {
        metadata["resourceVersion"] = after.to_string().into();
    }
    metadata
}

fn object(resource: usize, name: &str, mark: u64, content: Content, after: Option<Revision>) -> Value {
    let Resource { api_version, kind, .. } = RESOURCES[resource];
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata(name, mark, content, after)})
}

pub fn revision(object: &Value) -> Option<Revision> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// `None` for what is not ours, as the root certificates of a namespace.
pub fn version(object: &Value) -> Option<Version> {
    let metadata = &object["metadata"];
    Some(Version {
        name: metadata["name"].as_str()?.to_owned(),
        revision: revision(object)?,
        uid: metadata["uid"].as_str()?.to_owned(),
        mark: metadata["annotations"]["mark"].as_str()?.parse().ok()?,
        color: metadata["labels"]["color"].as_str()?.strip_prefix('c')?.parse().ok()?,
    })
}

/// What a line of a watch says.
#[derive(Debug)]
pub enum Line {
    Notice(Notice),
    /// 410.
    Gone,
    Error(String),
    /// About an object that is not ours.
    Other,
}

pub fn line(text: &[u8]) -> Line {
    let Ok(event) = serde_json::from_slice::<Value>(text) else {
        return Line::Error(format!("a line that is no JSON: {}", String::from_utf8_lossy(text)));
    };
    let object = &event["object"];
    let change = match event["type"].as_str().unwrap_or_default() {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Deleted,
        "BOOKMARK" => {
            let is_end = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
            let Some(at) = revision(object) else { return Line::Error(event.to_string()) };
            return Line::Notice(if is_end { Notice::InitialEnd(at) } else { Notice::Bookmark(at) });
        }
        "ERROR" if object["code"] == 410 => return Line::Gone,
        _ => return Line::Error(event.to_string()),
    };
    version(object).map_or(Line::Other, |version| Line::Notice(Notice::Change(change, version)))
}

/// Those without priority may do everything, but none of it before others or against a refusal.
pub fn allow_storm(api: &mut Api) -> Result<(), String> {
    let binding = json!({"metadata": {"name": "storm"}, "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "storm"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    match api.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", JSON, Some(&binding)) {
        Some((201, _)) => Ok(()),
        other => Err(format!("the binding of the storm: {other:?}")),
    }
}

/// The namespace and the definition; waits until both can be used.
pub fn prepare(port: u16) -> Result<(), String> {
    let mut api = Api::new(port);
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    let definition = json!({
        "metadata": {"name": "marks.robust.example.com"},
        "spec": {"group": "robust.example.com", "scope": "Namespaced", "names": {"plural": "marks", "kind": "Mark"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    for (path, body) in [("/api/v1/namespaces", &namespace), (DEFINITIONS, &definition)] {
        match api.send("POST", path, JSON, Some(body)) {
            Some((201, _)) => {}
            other => return Err(format!("{path} answered {other:?}")),
        }
    }
    let end = std::time::Instant::now() + PATIENCE;
    while !RESOURCES.iter().all(|resource| api.get(resource.path).is_some_and(|(code, _)| code == 200)) {
        if std::time::Instant::now() > end {
            return Err("the resources are not served".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

pub fn path_of(resource: usize) -> &'static str {
    RESOURCES[resource].path
}
