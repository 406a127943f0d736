//! A resize changes how much processor and memory containers and the pod have, and nothing else.

use super::{MIRROR, check_whole, put};
use crate::validate::qos_class;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_rules::Env;
use kubelith_rules::common::{Fields, SPEC, member};
use kubelith_rules::internal;

const ONLY_COMPUTE: &str = "only cpu and memory resources are mutable";

pub fn check(env: &Env, new: &Value, old: &Value, errors: &mut ErrorList) {
    check_whole(env, new, errors);
    let refused = |why: &str| ErrorList::from(Error::forbidden(&Path::new(""), why));
    if old.meta().annotation(MIRROR).is_some() {
        *errors = refused("static pods cannot be resized");
        return;
    }
    let (own, before) = (member(new, "spec"), member(old, "spec"));
    if member(before, "os").text("name") == "windows" {
        *errors = refused("windows pods cannot be resized");
        return;
    }
    let class_before = match member(old, "status").text("qosClass") {
        "" => qos_class(&env.features, old),
        known => known,
    };
    if class_before != qos_class(&env.features, new) {
        let shown = BadValue::json(member(new, "status").text("qosClass"));
        errors.push(Error::invalid(&SPEC, shown, "Pod QOS Class may not change as a result of resizing"));
    }
    // A kubelet that can resize says what containers have.
    let running = member(old, "status").list("containerStatuses").iter().find(|s| member(s, "state").has("running"));
    if running.is_some_and(|status| !status.has("resources")) {
        errors.push(Error::forbidden(&SPEC, "Pod running on node without support for resize"));
    }
    let mut spec = own.clone();
    if !check_pod_level(env, &mut spec, own, before, errors) {
        return;
    }
    if !member(old, "status").list("nodeAllocatableResourceClaimStatuses").is_empty() {
        errors.push(Error::forbidden(&SPEC, "pods with node allocatable resource claims cannot be resized"));
    }
    let count = errors.len();
    check_order(own, before, errors);
    if errors.len() > count {
        return;
    }
    for list in ["initContainers", "containers"] {
        for (i, (container, old)) in own.list(list).iter().zip(before.list(list)).enumerate() {
            if list == "initContainers" && !can_resize(env, old) {
                continue;
            }
            let path = SPEC.item(list, i);
            check_removed(
                member(container, "resources"),
                member(old, "resources"),
                "",
                &path.child("resources"),
                errors,
            );
        }
    }
    check_containers(&mut spec, before, errors);
    check_init_containers(env, &mut spec, before, errors);
    if errors.is_empty() && !internal::same("PodSpec", Some(&spec), Some(before)) {
        errors.push(Error::forbidden(&SPEC, ONLY_COMPUTE));
    }
}

/// Whether there is more to check.
fn check_pod_level(env: &Env, spec: &mut Value, own: &Value, before: &Value, errors: &mut ErrorList) -> bool {
    let has_any = |spec: &Value| {
        let resources = member(spec, "resources");
        ["requests", "limits"].iter().any(|key| resources.map(key).is_some_and(|map| !map.is_empty()))
    };
    if !has_any(own) && !has_any(before) {
        return true;
    }
    let path = SPEC.child("resources");
    if !env.features.pod_level_resize {
        let detail = "resize of pods with pod-level resources is forbidden when \
                      InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
        errors.push(Error::forbidden(&Path::new(""), detail));
        return false;
    }
    if before.has("resources") {
        if !own.has("resources") {
            errors.push(Error::forbidden(&path, "pod-level resources cannot be removed"));
            return true;
        }
        check_removed(member(own, "resources"), member(before, "resources"), "pod-level ", &path, errors);
    }
    if spec.has("resources") {
        drop_compute_changes(spec, before);
        let resources = member(spec, "resources");
        let is_empty =
            ["requests", "limits", "claims"].iter().all(|key| resources.get(key).is_none_or(Value::is_empty));
        if !before.has("resources") && is_empty {
            put(spec, &["resources"], None);
        }
    }
    if !internal::same("*ResourceRequirements", spec.get("resources"), before.get("resources")) {
        errors.push(Error::forbidden(&SPEC, format!("{ONLY_COMPUTE} at pod-level")));
    }
    true
}

/// Containers stay who and where they are.
fn check_order(own: &Value, before: &Value, errors: &mut ErrorList) {
    for list in ["containers", "initContainers"] {
        let (new, old) = (own.list(list), before.list(list));
        if new.len() != old.len() {
            let detail = format!("{list} may not be added or removed on resize");
            errors.push(Error::forbidden(&SPEC.child(list), detail));
            continue;
        }
        for (i, (new, old)) in new.iter().zip(old).enumerate() {
            if new.text("name") != old.text("name") {
                let path = SPEC.item(list, i);
                let detail = format!("{list} may not be renamed or reordered on resize");
                errors.push(Error::forbidden(&path.child("name"), detail));
            }
        }
    }
}

fn check_removed(own: &Value, before: &Value, level: &str, path: &Path<'_>, errors: &mut ErrorList) {
    for kind in ["requests", "limits"] {
        if before.entries(kind).any(|(name, _)| member(own, kind).get(name).is_none()) {
            let detail = format!("{level}resource {kind} cannot be removed");
            errors.push(Error::forbidden(&path.child(kind), detail));
        }
    }
}

fn check_containers(spec: &mut Value, before: &Value, errors: &mut ErrorList) {
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten();
    for (container, old) in containers.zip(before.list("containers")) {
        reset_compute(container, old);
        if !internal::same("Container", Some(container), Some(old)) {
            errors.push(Error::forbidden(&SPEC, ONLY_COMPUTE));
        }
    }
}

/// Whether an init container may be given more or less.
fn can_resize(env: &Env, container: &Value) -> bool {
    env.features.resizes_init_containers || container.text("restartPolicy") == "Always"
}

fn check_init_containers(env: &Env, spec: &mut Value, before: &Value, errors: &mut ErrorList) {
    let containers = spec.get_mut("initContainers").and_then(Value::as_array_mut).into_iter().flatten();
    for (i, (container, old)) in containers.zip(before.list("initContainers")).enumerate() {
        let path = SPEC.item("initContainers", i);
        let is_sidecar = container.text("restartPolicy") == "Always";
        let is_changed = !internal::same("Container", Some(container), Some(old));
        if !can_resize(env, container) {
            if is_changed {
                let detail = "resources for non-sidecar init containers are immutable";
                errors.push(Error::forbidden(&SPEC, detail));
            }
            continue;
        }
        reset_compute(container, old);
        if !internal::same("Container", Some(container), Some(old)) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(Error::forbidden(&path, detail));
        }
        if is_changed && !is_sidecar {
            let restarts =
                container.list("resizePolicy").iter().filter(|p| p.text("restartPolicy") == "RestartContainer");
            errors.extend(restarts.map(|_| {
                let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                Error::forbidden(&path, detail)
            }));
        }
    }
}

/// The reference rebuilds requests and limits only: a claim that was there is a change.
fn reset_compute(container: &mut Value, old: &Value) {
    container.remove_at(&["resources", "claims"]);
    drop_compute_changes(container, old);
}

/// Processor and memory of `owner` as they were.
fn drop_compute_changes(owner: &mut Value, old: &Value) {
    for kind in ["requests", "limits"] {
        for name in ["cpu", "memory"] {
            put(owner, &["resources", kind, name], old.at(&["resources", kind, name]));
        }
    }
}
