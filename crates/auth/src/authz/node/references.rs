//! What pods and volumes refer to.

use super::graph::Target;
use kubelith_codec::json::Select;
use kubelith_meta::{Map, Str, Value};

/// What is read of a container: its references.
static CONTAINER: Select = Select::Members(&[
    ("envFrom", Select::All),
    ("env", Select::Each(&Select::Members(&[("valueFrom", Select::All)]))),
]);

/// What is read of a pod's status: the claims that were made for it.
const CLAIMS: Select =
    Select::Members(&[("resourceClaimStatuses", Select::All), ("extendedResourceClaimStatus", Select::All)]);

/// The parts of a pod that [`of_pod`] looks at, and its node. They are a small share of it.
pub static READ_OF_POD: Select = Select::Members(&[
    (
        "metadata",
        Select::Members(&[
            ("name", Select::All),
            ("namespace", Select::All),
            ("annotations", Select::Members(&[(MIRROR, Select::All)])),
        ]),
    ),
    (
        "spec",
        Select::Members(&[
            ("nodeName", Select::All),
            ("serviceAccountName", Select::All),
            ("imagePullSecrets", Select::All),
            ("volumes", Select::All),
            ("resourceClaims", Select::All),
            ("containers", Select::Each(&CONTAINER)),
            ("initContainers", Select::Each(&CONTAINER)),
            ("ephemeralContainers", Select::Each(&CONTAINER)),
        ]),
    ),
    ("status", CLAIMS),
]);

/// The claims that were made for a pod: all of its references that change while it is on a node.
pub static CLAIMS_OF_POD: Select = Select::Members(&[("status", CLAIMS)]);

const MIRROR: &str = "kubernetes.io/config.mirror";

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// Everything in the pod's own namespace that its kubelet needs for it.
pub fn of_pod(pod: &Value) -> Vec<(Target, Str)> {
    let mut found = Found(Vec::new());
    if pod.at(&["metadata", "annotations", MIRROR]).is_some() {
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
