//! What pods and volumes refer to.

use super::graph::Target;
use kubelith_meta::{Map, Str, Value};

/// Members that are not read here, wherever they are in a pod. They are the bulk of it, and need not be parsed.
const UNREAD_OF_PODS: [&str; 18] = [
    // Only if they refer to nothing.
    "containers",
    "ephemeralContainers",
    "initContainers",
    "affinity",
    "args",
    "command",
    "conditions",
    "containerStatuses",
    "lifecycle",
    "livenessProbe",
    "managedFields",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "tolerations",
    "value",
];

/// Members of a pod with this JSON that need not be read to know what it refers to.
pub fn unread_of_pod(json: &[u8]) -> &'static [&'static str] {
    // Containers refer by variables: secretKeyRef and configMapKeyRef, or envFrom.
    let refers = |word: &[u8]| memchr::memmem::find(json, word).is_some();
    if refers(b"KeyRef\"") || refers(b"envFrom\"") { &UNREAD_OF_PODS[3..] } else { &UNREAD_OF_PODS }
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// Everything in the pod's own namespace that its kubelet needs for it.
pub fn of_pod(pod: &Value) -> Vec<(Target, Str)> {
    let mut found = Found(Vec::new());
    if pod.at(&["metadata", "annotations", "kubernetes.io/config.mirror"]).is_some() {
        // A mirror pod is made by the kubelet itself: it must not gain anything by writing names into one.
        return found.0;
    }
    found.add(Target::ServiceAccount, pod.str_at(&["spec", "serviceAccountName"]));
    for secret in list(pod, &["spec", "imagePullSecrets"]) {
        found.add(Target::Secret, secret.str_at(&["name"]));
    }
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(pod, &["spec", containers]) {
            found.add_container(container);
        }
    }
    for volume in list(pod, &["spec", "volumes"]) {
        found.add_volume(volume, pod.str_at(&["metadata", "name"]));
    }
    for claim in list(pod, &["spec", "resourceClaims"]) {
        found.add(Target::ResourceClaim, claim_name(pod, claim));
    }
    found.add(Target::ResourceClaim, pod.str_at(&["status", "extendedResourceClaimStatus", "resourceClaimName"]));
    found.0.sort_unstable();
    found.0.dedup();
    found.0
}

/// The claim's name, given or made from a template; empty if it is not made yet.
fn claim_name<'a>(pod: &'a Value, claim: &'a Value) -> &'a str {
    let given = claim.str_at(&["resourceClaimName"]);
    if !given.is_empty() || claim.str_at(&["resourceClaimTemplateName"]).is_empty() {
        return given;
    }
    let statuses = list(pod, &["status", "resourceClaimStatuses"]).iter();
    let mut own = statuses.filter(|s| s.str_at(&["name"]) == claim.str_at(&["name"]));
    own.next().map_or("", |s| s.str_at(&["resourceClaimName"]))
}

struct Found(Vec<(Target, Str)>);

impl Found {
    fn add(&mut self, target: Target, name: &str) {
        if !name.is_empty() {
            self.0.push((target, name.into()));
        }
    }

    fn add_container(&mut self, container: &Value) {
        for source in list(container, &["envFrom"]) {
            self.add(Target::Secret, source.str_at(&["secretRef", "name"]));
            self.add(Target::ConfigMap, source.str_at(&["configMapRef", "name"]));
        }
        for variable in list(container, &["env"]) {
            self.add(Target::Secret, variable.str_at(&["valueFrom", "secretKeyRef", "name"]));
            self.add(Target::ConfigMap, variable.str_at(&["valueFrom", "configMapKeyRef", "name"]));
        }
    }

    fn add_volume(&mut self, volume: &Value, pod_name: &str) {
        let (mut claim, mut is_ephemeral) = ("", false);
        for (kind, source) in volume.as_object().into_iter().flat_map(Map::iter) {
            match kind {
                "azureFile" | "secret" => self.add(Target::Secret, source.str_at(&["secretName"])),
                "cephfs" | "cinder" | "flexVolume" | "rbd" | "scaleIO" | "iscsi" | "storageos" => {
                    self.add(Target::Secret, source.str_at(&["secretRef", "name"]));
                }
                "csi" => self.add(Target::Secret, source.str_at(&["nodePublishSecretRef", "name"])),
                "configMap" => self.add(Target::ConfigMap, source.str_at(&["name"])),
                "projected" => {
                    for source in list(source, &["sources"]) {
                        self.add(Target::Secret, source.str_at(&["secret", "name"]));
                        self.add(Target::ConfigMap, source.str_at(&["configMap", "name"]));
                    }
                }
                "persistentVolumeClaim" => claim = source.str_at(&["claimName"]),
                "ephemeral" => is_ephemeral = !source.is_null(),
                _ => {}
            }
        }
        self.add(Target::PersistentVolumeClaim, claim);
        if claim.is_empty() && is_ephemeral {
            self.add(Target::PersistentVolumeClaim, &format!("{pod_name}-{}", volume.str_at(&["name"])));
        }
    }
}

/// Namespace and name of the Secrets that kubelets need for a persistent volume.
pub fn secrets_of_volume(volume: &Value) -> Vec<(Str, Str)> {
    let claim_namespace = volume.str_at(&["spec", "claimRef", "namespace"]);
    let spec = |path: &[&str]| volume.at(&["spec"]).map_or("", |s| s.str_at(path));
    let mut secrets: Vec<(Str, Str)> = Vec::new();
    let mut add = |namespace: &str, name: &str| {
        if !name.is_empty() {
            secrets.push((namespace.into(), name.into()));
        }
    };
    let or_claim = |namespace| if str::is_empty(namespace) { claim_namespace } else { namespace };
    add(or_claim(spec(&["azureFile", "secretNamespace"])), spec(&["azureFile", "secretName"]));
    for source in ["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"] {
        add(or_claim(spec(&[source, "secretRef", "namespace"])), spec(&[source, "secretRef", "name"]));
    }
    for source in ["cinder", "storageos"] {
        add(spec(&[source, "secretRef", "namespace"]), spec(&[source, "secretRef", "name"]));
    }
    // The controller's secrets of a CSI volume are none of the kubelet's business.
    for reference in ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"] {
        add(spec(&["csi", reference, "namespace"]), spec(&["csi", reference, "name"]));
    }
    secrets
}
