//! What the loads write: pods of about 8 KB once they are stored, as clusters have them.

use serde_json::{Value, json};

pub const NAMESPACE: &str = "bench";

pub fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

pub fn config_maps() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

/// What the loads on many objects write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Pods,
    /// Of about 1 KB once they are stored.
    ConfigMaps,
}

/// Objects that share the value of the label `group`.
pub const IN_GROUP: usize = 5;

impl Kind {
    pub fn parse(name: &str) -> Option<Kind> {
        match name {
            "pods" => Some(Kind::Pods),
            "configmaps" => Some(Kind::ConfigMaps),
            _ => None,
        }
    }

    pub fn path(self) -> String {
        match self {
            Kind::Pods => pods(),
            Kind::ConfigMaps => config_maps(),
        }
    }

    pub fn one(self, index: usize) -> String {
        format!("{}/{}", self.path(), pod_name(index))
    }

    pub fn object(self, index: usize) -> String {
        match self {
            Kind::Pods => pod(index),
            Kind::ConfigMaps => json!({
                "metadata": {"name": pod_name(index), "labels": labels(index)},
                "data": {"settings": format!("{index:08}").repeat(40)}
            })
            .to_string(),
        }
    }
}

fn labels(index: usize) -> Value {
    let group = format!("{}", index / IN_GROUP);
    json!({"app.kubernetes.io/name": format!("app-{}", index % 100), "shard": format!("{}", index % 1000), "group": group, "tier": "backend"})
}

pub fn pod_name(index: usize) -> String {
    format!("pod-{index:06}")
}

pub fn pod(index: usize) -> String {
    pod_value(index).to_string()
}

/// A custom object with all that a pod has.
pub fn widget(index: usize) -> String {
    let mut widget = pod_value(index);
    widget["apiVersion"] = json!("bench.example.com/v1");
    widget["kind"] = json!("Widget");
    widget.to_string()
}

fn pod_value(index: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(index),
            "labels": labels(index),
            "annotations": {"example.com/checksum": "0123456789abcdef".repeat(4), "example.com/owner": "a team with a long name"}
        },
        "spec": {
            "automountServiceAccountToken": false,
            "nodeName": format!("node-{}", index % 500),
            "containers": [container("app", index), container("proxy", index)],
            "volumes": [{"name": "config", "configMap": {"name": "settings"}}, {"name": "data", "emptyDir": {}}],
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "bench", "effect": "NoSchedule"}]
        }
    })
}

fn container(name: &str, index: usize) -> Value {
    let environment: Vec<Value> = (0..10)
        .map(|k| json!({"name": format!("SETTING_NUMBER_{k}"), "value": format!("the value {k} of pod {index}")}))
        .collect();
    let probe = json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10});
    json!({
        "name": name,
        "image": "registry.example.com/team/app:1.2.3",
        "args": ["--listen=:8080", "--verbose=2", "--config=/etc/config/app.yaml"],
        "env": environment,
        "ports": [{"containerPort": 8080, "name": format!("{name}-http")}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}, {"name": "data", "mountPath": "/data"}],
        "livenessProbe": probe,
        "readinessProbe": probe
    })
}

/// An object that is about to be written.
pub struct Written {
    pub name: String,
    /// Since the load began, in microseconds.
    pub moment: u128,
    pub node: String,
}

/// A config map of about 1 KB that carries a moment, from which the watchers see how late they are.
pub fn stamped(written: &Written) -> String {
    let Written { name, moment, .. } = written;
    json!({"metadata": {"name": name, "labels": {"bench": "watched"}}, "data": {"sent": format!("@{moment:024}"), "padding": "x".repeat(900)}})
        .to_string()
}

/// The same as a custom object.
pub fn stamped_widget(written: &Written) -> String {
    let Written { name, moment, .. } = written;
    let status = json!({"sent": format!("@{moment:024}"), "padding": "x".repeat(900)});
    json!({"apiVersion": "bench.example.com/v1", "kind": "Widget", "metadata": {"name": name, "labels": {"bench": "watched"}}, "spec": {"volumes": [status]}})
        .to_string()
}

/// A small pod on a node.
pub fn stamped_pod(written: &Written) -> String {
    let Written { name, moment, node } = written;
    let sent = json!({"sent": format!("@{moment:024}"), "padding": "x".repeat(900)});
    let spec = json!({"automountServiceAccountToken": false, "nodeName": node, "containers": [{"name": "app", "image": "app:1"}]});
    json!({"metadata": {"name": name, "labels": {"bench": "watched"}, "annotations": sent}, "spec": spec}).to_string()
}

/// Finds that moment in an event.
pub fn stamp(event: &[u8]) -> Option<u128> {
    number(event.get(behind(event, b"\"@")?..)?)
}

/// The resourceVersion of an event's object.
pub fn revision(event: &[u8]) -> Option<u64> {
    number(event.get(behind(event, b"\"resourceVersion\":\"")?..)?)
}

fn behind(event: &[u8], mark: &[u8]) -> Option<usize> {
    memchr::memmem::find(event, mark).map(|at| at + mark.len())
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_the_size_of_a_pod() {
        // Defaults and managedFields make some 8 KB of it.
        let size = pod(1).len();
        assert!((2500..3500).contains(&size), "{size}");
    }

    #[test]
    fn a_stamp_is_found_again() {
        let written = Written { name: "a".to_owned(), moment: 12345, node: "n".to_owned() };
        for object in [stamped, stamped_widget, stamped_pod] {
            assert_eq!(stamp(object(&written).as_bytes()), Some(12345));
        }
        assert_eq!(stamp(b"{}"), None);
        assert_eq!(revision(br#"{"metadata":{"resourceVersion":"17"}}"#), Some(17));
        assert_eq!(revision(b"{}"), None);
    }
}
