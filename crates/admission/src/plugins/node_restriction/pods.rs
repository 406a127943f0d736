//! Pods: a node makes mirror pods of its own, and touches those that run on it.

use super::{Checked, Visit};
use crate::plugins::list;
use crate::plugins::service_account::secrets;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::Operation;

const MIRROR: &str = "kubernetes.io/config.mirror";
const POD: (&str, &str, &str) = ("", "pods", "pod");
const NODE: (&str, &str, &str) = ("", "nodes", "node");

/// Volumes that need nothing of the API.
const PLAIN_VOLUMES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];
const VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];
const PROJECTIONS: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

impl Visit<'_> {
    pub(super) async fn pod(&self) -> Checked {
        let node = Quoted(self.node);
        match self.request.operation {
            Operation::Create => self.new_pod().await,
            Operation::Delete => {
                let pod = self.find(POD, &self.request.call.namespace, self.name()).await?;
                match runs_on(&pod, self.node) {
                    true => Ok(()),
                    false => self.refuse(format!("node {node} can only delete pods with spec.nodeName set to itself")),
                }
            }
            Operation::Update | Operation::Connect => {
                let operation = Quoted(self.operation());
                let why =
                    format!("unexpected operation {operation}, node {node} can only create and delete mirror pods");
                self.refuse(why)
            }
        }
    }

    async fn new_pod(&self) -> Checked {
        let (node, pod) = (Quoted(self.node), self.object);
        if pod.meta().annotation(MIRROR).is_none() {
            let mirror = Quoted(MIRROR);
            return self
                .refuse(format!("pod does not have {mirror} annotation, node {node} can only create mirror pods"));
        }
        if !runs_on(pod, self.node) {
            return self.refuse(format!("node {node} can only create pods with spec.nodeName set to itself"));
        }
        let owner = match list(pod, &["metadata", "ownerReferences"]) {
            [] => {
                return self.refuse(format!("node {node} can only create pods with an owner reference set to itself"));
            }
            [owner] => owner,
            _ => {
                let why = format!("node {node} can only create pods with a single owner reference set to itself");
                return self.refuse(why);
            }
        };
        self.owner(owner).await?;
        match references(pod) {
            Ok(None) => Ok(()),
            Ok(Some(resource)) => self.refuse(format!("node {node} can not create pods that reference {resource}")),
            Err(why) => self.refuse(format!("error checking mirror pod for API references: {why}")),
        }
    }

    async fn owner(&self, owner: &Value) -> Checked {
        let node = Quoted(self.node);
        let is = |field: &str, value: &str| owner.str_at(&[field]) == value;
        let flag = |field: &str| owner.get(field).and_then(Value::as_bool) == Some(true);
        if !is("apiVersion", "v1") || !is("kind", "Node") || !is("name", self.node) {
            return self.refuse(format!("node {node} can only create pods with an owner reference set to itself"));
        }
        if !flag("controller") {
            return self
                .refuse(format!("node {node} can only create pods with a controller owner reference set to itself"));
        }
        if flag("blockOwnerDeletion") {
            return self.refuse(format!("node {node} must not set blockOwnerDeletion on an owner reference"));
        }
        let own = self.find(NODE, "", self.node).await?;
        let (uid, has) = (owner.str_at(&["uid"]), own.meta().uid());
        match uid == has {
            true => Ok(()),
            false => self.refuse(format!("node {} UID mismatch: expected {uid} got {has}", self.node)),
        }
    }

    pub(super) fn pod_status(&self) -> Checked {
        let node = Quoted(self.node);
        if self.request.operation != Operation::Update {
            return self.refuse(format!("unexpected operation {}", Quoted(self.operation())));
        }
        let (old, new) = (self.old(), self.object);
        if !runs_on(old, self.node) {
            return self
                .refuse(format!("node {node} can only update pod status for pods with spec.nodeName set to itself"));
        }
        let empty = |value: &&Value| !value.is_empty();
        let differ = |path: &[&str]| old.at(path).filter(empty) != new.at(path).filter(empty);
        if differ(&["metadata", "labels"]) {
            return self.refuse(format!("node {node} cannot update labels through pod status"));
        }
        if differ(&["status", "resourceClaimStatuses"]) {
            return self.refuse(format!("node {node} cannot update resource claim statues"));
        }
        if differ(&["status", "extendedResourceClaimStatus"]) {
            return self.refuse(format!("node {node} cannot update extended resource claim status"));
        }
        Ok(())
    }

    pub(super) async fn eviction(&self) -> Checked {
        if self.request.operation != Operation::Create {
            return self.refuse(format!("unexpected operation {}", self.operation()));
        }
        let name = self.name();
        if name.is_empty() {
            return self.refuse("could not determine pod from request data");
        }
        let pod = self.find(POD, &self.request.call.namespace, name).await?;
        match runs_on(&pod, self.node) {
            true => Ok(()),
            false => self.refuse(format!("node {} can only evict pods with spec.nodeName set to itself", self.node)),
        }
    }

    /// What may be due to caches that are behind is no refusal: whoever asks again may get it.
    pub(super) async fn pod_certificate(&self) -> Checked {
        if !self.plugin.gates.pod_certificates {
            return self.refuse("PodCertificateRequest feature gate is disabled");
        }
        if self.request.operation != Operation::Create {
            return self.refuse(format!("unexpected operation {}", self.operation()));
        }
        if !self.request.call.subresource.is_empty() {
            return self.refuse(format!("unexpected subresource {}", self.request.call.subresource));
        }
        let namespace = self.request.call.namespace.as_str();
        let asked = |field: &str| self.object.str_at(&["spec", field]);
        let (node, pod_name) = (asked("nodeName"), asked("podName"));
        if node != self.node {
            let (node, own) = (Quoted(node), Quoted(self.node));
            let why = format!("PodCertificateRequest.Spec.NodeName={node}, which is not the requesting node {own}");
            return self.refuse(why);
        }
        let missing = |what: &str, name: &str, why: Status| {
            let name = Quoted(name);
            Status::unknown(format!(
                "while retrieving {what} {name} named in the PodCertificateRequest: {}",
                why.message
            ))
        };
        let found = self.find(NODE, "", node).await.map_err(|why| missing("node", node, why))?;
        let full = format!("{namespace}/{pod_name}");
        let pod_shown = Quoted(&full);
        let uids = |given: &'static str, has: &Value| {
            let (given, has) = (asked(given), has.meta().uid().to_owned());
            (given != has).then(|| (Quoted(given).to_string(), Quoted(&has).to_string()))
        };
        if let Some((given, has)) = uids("nodeUID", &found) {
            return Err(Status::unknown(format!(
                "PodCertificateRequest for pod {pod_shown} names node UID {given}, inconsistent with the running node ({has})"
            )));
        }
        let pod = self.find(POD, namespace, pod_name).await.map_err(|why| missing("pod", &full, why))?;
        if let Some((given, has)) = uids("podUID", &pod) {
            return Err(Status::unknown(format!(
                "PodCertificateRequest for pod {pod_shown} contains pod UID ({given}) which differs from running pod {has}"
            )));
        }
        if !runs_on(&pod, node) {
            let why =
                format!("pod {pod_shown} is not running on node {} named in the PodCertificateRequest", Quoted(node));
            return self.refuse(why);
        }
        if pod.meta().annotation(MIRROR).is_some() {
            return self.refuse(format!("pod {pod_shown} is a mirror pod"));
        }
        let (given, has) = (asked("serviceAccountName"), pod.str_at(&["spec", "serviceAccountName"]));
        if given != has {
            return self.refuse(format!(
                "PodCertificateRequest for pod {pod_shown} contains serviceAccountName ({}) that differs from running pod \
                 ({})",
                Quoted(given),
                Quoted(has)
            ));
        }
        let account = self.find(("", "serviceaccounts", "serviceaccount"), namespace, given).await;
        let account = account.map_err(|why| missing("service account", &format!("{namespace}/{given}"), why))?;
        if let Some((given, has)) = uids("serviceAccountUID", &account) {
            return Err(Status::unknown(format!(
                "PodCertificateRequest for pod {pod_shown} names service account UID {given}, which differs from the running \
                 service account ({has})"
            )));
        }
        Ok(())
    }
}

fn runs_on(pod: &Value, node: &str) -> bool {
    pod.str_at(&["spec", "nodeName"]) == node
}

/// A kind of object that the pod refers to, as messages name it.
fn references(pod: &Value) -> Result<Option<&'static str>, String> {
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if secrets::any(pod) {
        return Ok(Some("secrets"));
    }
    if config_maps(pod) {
        return Ok(Some("configmaps"));
    }
    if !list(pod, &["spec", "resourceClaims"]).is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in list(pod, &["spec", "volumes"]) {
        let has = |kind: &str| volume.get(kind).is_some_and(|v| !v.is_null());
        if PLAIN_VOLUMES.iter().any(|kind| has(kind)) {
            continue;
        }
        if let Some((_, named)) = VOLUMES.iter().find(|(kind, _)| has(kind)) {
            return Ok(Some(named));
        }
        let name = Quoted(volume.str_at(&["name"]));
        if !has("projected") {
            return Err(format!("unknown volume type for volume  {name}"));
        }
        for source in list(volume, &["projected", "sources"]) {
            match PROJECTIONS.iter().find(|(kind, _)| source.get(kind).is_some()) {
                Some((_, named)) => return Ok(Some(named)),
                None if source.get("downwardAPI").is_some() => {}
                None => return Err(format!("unknown source for projected volume {name}")),
            }
        }
    }
    Ok(None)
}

fn config_maps(pod: &Value) -> bool {
    let of_container = |container: &Value| {
        list(container, &["envFrom"]).iter().any(|from| from.get("configMapRef").is_some())
            || list(container, &["env"]).iter().any(|env| env.at(&["valueFrom", "configMapKeyRef"]).is_some())
    };
    let of_volume = |volume: &Value| {
        volume.get("configMap").is_some()
            || list(volume, &["projected", "sources"]).iter().any(|source| source.get("configMap").is_some())
    };
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    kinds.iter().any(|kind| list(pod, &["spec", kind]).iter().any(of_container))
        || list(pod, &["spec", "volumes"]).iter().any(of_volume)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn what_mirror_pods_must_not_refer_to() {
        for (spec, want) in [
            (r#"{"containers":[{"name":"c"}],"volumes":[{"name":"v","hostPath":{"path":"/"}}]}"#, Ok(None)),
            (r#"{"volumes":[{"name":"v","projected":{"sources":[{"downwardAPI":{}}]}}]}"#, Ok(None)),
            (r#"{"serviceAccountName":"a"}"#, Ok(Some("serviceaccounts"))),
            (r#"{"imagePullSecrets":[{"name":"s"}]}"#, Ok(Some("secrets"))),
            (r#"{"ephemeralContainers":[{"envFrom":[{"secretRef":{"name":"s"}}]}]}"#, Ok(Some("secrets"))),
            (r#"{"volumes":[{"name":"v","secret":{"secretName":"s"}}]}"#, Ok(Some("secrets"))),
            (r#"{"containers":[{"envFrom":[{"configMapRef":{"name":"s"}}]}]}"#, Ok(Some("configmaps"))),
            (r#"{"volumes":[{"name":"v","configMap":{"name":"s"}}]}"#, Ok(Some("configmaps"))),
            (r#"{"resourceClaims":[{"name":"s"}]}"#, Ok(Some("resourceclaims"))),
            (r#"{"volumes":[{"name":"v","csi":{"driver":"d"}}]}"#, Ok(Some("csidrivers (via CSI volumes)"))),
            (r#"{"volumes":[{"name":"v","glusterfs":{}}]}"#, Ok(Some("endpoints (via glusterFS volumes)"))),
            (r#"{"volumes":[{"name":"v","persistentVolumeClaim":{}}]}"#, Ok(Some("persistentvolumeclaims"))),
            (
                r#"{"volumes":[{"name":"v","ephemeral":{}}]}"#,
                Ok(Some("persistentvolumeclaims (via ephemeral volumes)")),
            ),
            (r#"{"volumes":[{"name":"v","azureFile":{}}]}"#, Ok(Some("secrets (via azureFile volumes)"))),
            (
                r#"{"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{}}]}}]}"#,
                Ok(Some("serviceaccounts (via projected volumes)")),
            ),
            (
                r#"{"volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{}}]}}]}"#,
                Ok(Some("clustertrustbundles")),
            ),
            (
                r#"{"volumes":[{"name":"v","projected":{"sources":[{"podCertificate":{}}]}}]}"#,
                Ok(Some("podcertificates")),
            ),
            (
                r#"{"volumes":[{"name":"v","projected":{"sources":[{}]}}]}"#,
                Err("unknown source for projected volume \"v\"".to_owned()),
            ),
            (r#"{"volumes":[{"name":"v"}]}"#, Err("unknown volume type for volume  \"v\"".to_owned())),
        ] {
            let pod = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            assert_eq!(references(&pod), want, "{spec}");
        }
    }
}
