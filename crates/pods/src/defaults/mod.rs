//! Defaults of pods, their containers and volumes.

mod image;
mod resources;

use crate::defaults::image::pull_policy;
use crate::defaults::resources::{pod_level, requests_from_limits};
use kubelith_meta::{Map, Str, Value};
use kubelith_rules::defaults::amounts::round_up;
use kubelith_rules::defaults::{Defaults, drop_annotations, elements_mut, is_zero, object_mut, set_absent, text};

pub const RULES: Defaults = &[
    ("io.k8s.api.core.v1.PodTemplateSpec", drop_init_annotations),
    ("io.k8s.api.core.v1.PodSpec", mirror_service_account),
    ("io.k8s.api.core.v1.PodStatus", pod_addresses),
    ("io.k8s.api.core.v1.Container", container),
    ("io.k8s.api.core.v1.EphemeralContainer", container),
    ("io.k8s.api.core.v1.Volume", volume),
    ("io.k8s.api.core.v1.ResourceRequirements", |m| round_up(m, &["limits", "requests"])),
    ("io.k8s.api.core.v1.VolumeResourceRequirements", |m| round_up(m, &["limits", "requests"])),
    ("io.k8s.api.core.v1.PodSpec", |m| round_up(m, &["overhead"])),
    ("io.k8s.api.core.v1.PodStatus", |m| round_up(m, &["allocatedResources"])),
    ("io.k8s.api.core.v1.ContainerStatus", |m| round_up(m, &["allocatedResources"])),
];

/// Of pods, which may have resources as a whole.
pub const WITH_RESOURCES: Defaults = &[("io.k8s.api.core.v1.Pod", |m| pod(m, pod_level))];

pub const WITHOUT_RESOURCES: Defaults = &[("io.k8s.api.core.v1.Pod", |m| pod(m, |_| {}))];

/// What only pods get, and templates do not.
fn pod(pod: &mut Map, pod_level: fn(&mut Map)) {
    drop_init_annotations(pod);
    let spec = pod.entry_or_null("spec").make_object();
    // As it is stored, it lacks nothing.
    if spec.is_sealed() {
        return;
    }
    for kind in ["containers", "initContainers"] {
        elements_mut(spec, kind).for_each(requests_from_limits);
    }
    pod_level(spec);
    set_absent(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        for kind in ["containers", "initContainers"] {
            elements_mut(spec, kind).flat_map(|c| elements_mut(c, "ports")).for_each(host_port);
        }
    }
    // The reference does this while converting (core/v1/conversion.go).
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds", 1i64);
    }
}

/// In the host's network the port of a container is one of the host.
fn host_port(port: &mut Map) {
    if is_zero(port, "hostPort")
        && let Some(number) = port.get("containerPort").filter(|number| !number.is_empty()).cloned()
    {
        port.insert("hostPort", number);
    }
}

/// Annotations that had init containers before 1.8. Converting drops them (core/v1/conversion.go).
fn drop_init_annotations(object: &mut Map) {
    const DROPPED: [&str; 4] = [
        "pod.alpha.kubernetes.io/init-container-statuses",
        "pod.alpha.kubernetes.io/init-containers",
        "pod.beta.kubernetes.io/init-container-statuses",
        "pod.beta.kubernetes.io/init-containers",
    ];
    let Some(annotations) = object.get("metadata").and_then(|meta| meta.get("annotations")) else { return };
    if !annotations.as_object().is_some_and(|all| all.keys().any(|name| DROPPED.contains(&name))) {
        return;
    }
    drop_annotations(object, &DROPPED);
}

/// `serviceAccount` is the old name of `serviceAccountName`, which wins (core/v1/conversion.go).
fn mirror_service_account(spec: &mut Map) {
    let name = match (text(spec, "serviceAccountName"), text(spec, "serviceAccount")) {
        (name, old) if name == old => return,
        ("", old) => Str::from(old),
        (name, _) => Str::from(name),
    };
    spec.insert("serviceAccount", name.clone());
    spec.insert("serviceAccountName", name);
}

/// `podIP` is the first of `podIPs`, and wins if they differ (core/v1/conversion.go).
fn pod_addresses(status: &mut Map) {
    let first = status.get("podIPs").and_then(Value::as_array).and_then(<[Value]>::first);
    let first = first.map(|f| f.str_at(&["ip"]));
    match (text(status, "podIP"), first) {
        ("", Some(first)) if !first.is_empty() => {
            let first = Str::from(first);
            status.insert("podIP", first);
        }
        ("", _) => {}
        (single, first) if first == Some(single) => {}
        (single, _) => {
            let only = Value::from([("ip", single)]);
            status.insert("podIPs", vec![only]);
        }
    }
}

fn container(container: &mut Map) {
    if is_zero(container, "imagePullPolicy") {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy", policy);
    }
}

/// A volume without any source is an empty directory.
fn volume(volume: &mut Map) {
    if volume.iter().all(|(key, source)| key == "name" || source.is_null()) {
        volume.insert("emptyDir", Map::new());
    }
    if let Some(image) = object_mut(volume, "image")
        && is_zero(image, "pullPolicy")
    {
        let policy = pull_policy(text(image, "reference"));
        image.insert("pullPolicy", policy);
    }
}
