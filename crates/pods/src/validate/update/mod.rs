//! Pods as they come and as they change: little of a spec may.

mod gated;
mod resize;
mod status;

use super::annotations::{self, APP_ARMOR, MIRROR};
use super::{Owner, PodName, spec};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_subdomain, range_message};
use kubelith_meta::object::Namespacing;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Map, Value};
use kubelith_rules::common::{Fields, METADATA, SPEC, member, meta, meta_update};
use kubelith_rules::internal;
use kubelith_rules::{Env, Request, Rules};
use std::borrow::Cow;

pub const RULES: Rules = Rules { create: |request, pod| on_create(request.env, pod), update: on_update };

fn on_create(env: &Env, pod: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    check_whole(env, pod, &mut errors);
    let own = member(pod, "spec");
    if !own.list("ephemeralContainers").is_empty() {
        errors.push(Error::forbidden(&SPEC.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !own.text("nodeName").is_empty() && !own.list("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(Error::forbidden(&SPEC.child("nodeName"), detail));
    }
    annotations::check_match(member(pod, "metadata"), own, &SPEC, &mut errors);
    errors
}

fn check_metadata(env: &Env, pod: &Value, errors: &mut ErrorList) {
    errors.extend(meta(pod, Namespacing::Required, name_is_dns_subdomain));
    annotations::check(env, member(pod, "metadata"), member(pod, "spec"), &METADATA.child("annotations"), errors);
}

fn check_whole(env: &Env, pod: &Value, errors: &mut ErrorList) {
    check_metadata(env, pod, errors);
    let own = member(pod, "spec");
    spec(env, own, PodName(pod.meta().name()), Owner::Pod, &SPEC, errors);
    if own.text("serviceAccountName").is_empty() {
        for (i, volume) in own.list("volumes").iter().enumerate() {
            for (j, source) in member(volume, "projected").list("sources").iter().enumerate() {
                if source.has("serviceAccountToken") {
                    let path = SPEC.item("volumes", i);
                    let path = path.child("projected");
                    let path = path.item("sources", j);
                    let detail = "must not be specified when serviceAccountName is not set";
                    errors.push(Error::forbidden(&path.child("serviceAccountToken"), detail));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for (i, container) in own.list(list).iter().enumerate() {
            let image = container.text("image");
            if image.trim() != image {
                let path = SPEC.item(list, i);
                let detail = "must not have leading or trailing whitespace";
                errors.push(Error::invalid(&path.child("image"), image, detail));
            }
        }
    }
}

fn on_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource.is_empty() && has_judged_spec(new, old) {
        check_metadata(request.env, new, &mut errors);
        check_annotations(request.env, new, old, &mut errors);
        debug_assert!({
            let mut all = meta_update(new, old);
            check_update(&in_use(request.env, member(old, "spec")), new, old, &mut all);
            all == errors
        });
        return errors;
    }
    let env = &*in_use(request.env, member(old, "spec"));
    match request.subresource {
        "" => check_update(env, new, old, &mut errors),
        "status" => {
            check_annotations(env, new, old, &mut errors);
            status::check(env, new, old, &mut errors);
        }
        "ephemeralcontainers" => check_ephemeral(env, new, old, &mut errors),
        "resize" => resize::check(env, new, old, &mut errors),
        _ => {}
    }
    errors
}

/// Whether the spec stays, and is known to obey the rules. What they allow for is in the spec itself or does not change while the
/// process runs.
fn has_judged_spec(new: &Value, old: &Value) -> bool {
    new.shares("spec", old) && member(old, "spec").as_object().is_some_and(Map::is_judged)
}

/// What a pod has got stays allowed, though the feature is off by now.
fn in_use<'a>(env: &'a Env, before: &Value) -> Cow<'a, Env> {
    let mut features = env.features;
    let compares = |toleration: &Value| matches!(toleration.text("operator"), "Lt" | "Gt");
    features.comparing_tolerations |= before.list("tolerations").iter().any(compares);
    features.any_selinux_policy |= member(before, "securityContext").has("seLinuxChangePolicy");
    features.host_network_of_user_namespaces |=
        before.flag("hostNetwork") && before.get("hostUsers").and_then(Value::as_bool) == Some(false);
    features.pod_level_resources |= before.has("resources");
    if features == env.features { Cow::Borrowed(env) } else { Cow::Owned(Env { features, ..env.clone() }) }
}

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn check_update(env: &Env, new: &Value, old: &Value, errors: &mut ErrorList) {
    check_whole(env, new, errors);
    check_annotations(env, new, old, errors);
    let (own, before) = (member(new, "spec"), member(old, "spec"));
    for list in ["containers", "initContainers"] {
        if own.list(list).len() != before.list(list).len() {
            errors.push(Error::forbidden(&SPEC.child(list), "pod updates may not add or remove containers"));
            return;
        }
        for (i, container) in own.list(list).iter().enumerate() {
            let (image, path) = (container.text("image"), SPEC.item(list, i));
            if image.is_empty() {
                errors.push(Error::required(&path.child("image"), ""));
            }
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                errors.push(Error::invalid(&path.child("image"), image, detail));
            }
        }
    }
    let path = SPEC.child("activeDeadlineSeconds");
    match (own.int("activeDeadlineSeconds"), before.int("activeDeadlineSeconds")) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            return errors.push(Error::invalid(&path, new, range_message(0, i64::from(i32::MAX))));
        }
        (Some(new), Some(old)) if old < new => {
            return errors.push(Error::invalid(&path, new, "must be less than or equal to previous value"));
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(Error::invalid(&path, Value::Null, detail));
        }
        _ => {}
    }
    check_tolerations(env, own, before, errors);
    let known: Vec<&str> = before.list("schedulingGates").iter().map(|g| g.text("name")).collect();
    let gates = own.list("schedulingGates");
    for (i, gate) in gates.iter().enumerate() {
        let name = gate.text("name");
        // One of several of a name is told of.
        let is_last = gates[i + 1..].iter().all(|later| later.text("name") != name);
        if is_last && !known.contains(&name) {
            let path = SPEC.item("schedulingGates", i);
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(Error::forbidden(&path.child("name"), detail));
        }
    }
    check_rest(own, before, errors);
}

/// What is not checked by itself stays as it is.
fn check_rest(own: &Value, before: &Value, errors: &mut ErrorList) {
    let is_gated = !before.list("schedulingGates").is_empty();
    // Unless it is gated, what stays is the same if all is, and is compared once.
    if own == before || (is_gated && internal::same("PodSpec", Some(own), Some(before))) {
        return;
    }
    let mut spec = own.clone();
    for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        put(&mut spec, &[key], before.get(key));
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(before.list(list)) {
            put(container, &["image"], before.get("image"));
        }
    }
    let was_negative = before.int("terminationGracePeriodSeconds").is_some_and(|s| s < 0);
    if was_negative && spec.int("terminationGracePeriodSeconds") == Some(1) {
        put(&mut spec, &["terminationGracePeriodSeconds"], before.get("terminationGracePeriodSeconds"));
    }
    if is_gated {
        gated::check(&mut spec, before, errors);
    }
    if !internal::same("PodSpec", Some(&spec), Some(before)) {
        let difference = internal::difference("PodSpec", before, &spec);
        errors.push(Error::forbidden(&SPEC, format!("{UPDATABLE}\n{difference}")));
    }
}

fn put(object: &mut Value, path: &[&str], value: Option<&Value>) {
    match value {
        same if object.at(path) == same => {}
        Some(value) => object.set_at(path, value.clone()),
        None => drop(object.remove_at(path)),
    }
}

/// What some annotations say was decided when the pod came.
fn check_annotations(env: &Env, new: &Value, old: &Value, errors: &mut ErrorList) {
    let path = Path::of(&["metadata", "annotations"]);
    let (own, before) =
        (member(member(new, "metadata"), "annotations"), member(member(old, "metadata"), "annotations"));
    let mut forbid = |key: &str, verb: &str| {
        if key.starts_with(APP_ARMOR) {
            errors.push(Error::forbidden(&path.key(key), format!("may not {verb} AppArmor annotations")));
        }
        if key == MIRROR {
            errors.push(Error::forbidden(&path.key(key), format!("may not {verb} mirror pod annotation")));
        }
    };
    for (key, value) in before.as_object().into_iter().flat_map(|m| m.iter()) {
        if own.get(key) != Some(value) {
            forbid(key, "remove or update");
        }
    }
    for (key, _) in own.as_object().into_iter().flat_map(|m| m.iter()) {
        if before.get(key).is_none() {
            forbid(key, "add");
        }
    }
    annotations::check(env, member(new, "metadata"), member(new, "spec"), &path, errors);
}

/// Ephemeral containers only come.
fn check_ephemeral(env: &Env, new: &Value, old: &Value, errors: &mut ErrorList) {
    check_whole(env, new, errors);
    check_annotations(env, new, old, errors);
    if old.meta().annotation(MIRROR).is_some() {
        *errors = Error::forbidden(&Path::new(""), "static pods do not support ephemeral containers").into();
        return;
    }
    let path = SPEC.child("ephemeralContainers");
    let own = member(new, "spec").list("ephemeralContainers");
    for before in member(old, "spec").list("ephemeralContainers") {
        let name = before.text("name");
        match own.iter().rfind(|container| container.text("name") == name) {
            None => {
                let detail = format!("existing ephemeral containers {} may not be removed\n", Quoted(name));
                errors.push(Error::forbidden(&path, detail));
            }
            Some(container) if !internal::same("EphemeralContainer", Some(container), Some(before)) => {
                let difference = internal::difference("EphemeralContainer", before, container);
                let detail = format!("existing ephemeral containers {} may not be changed\n{difference}", Quoted(name));
                errors.push(Error::forbidden(&path, detail));
            }
            Some(_) => {}
        }
    }
}

/// Old tolerations stay, but for how long they hold.
fn check_tolerations(env: &Env, own: &Value, before: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("tolerations");
    let key = |t: &Value| ["key", "operator", "value", "effect"].map(|k| t.text(k).to_owned());
    let all: Vec<_> = own.list("tolerations").iter().map(key).collect();
    if before.list("tolerations").iter().any(|old| !all.contains(&key(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(Error::forbidden(&path, detail));
        return;
    }
    super::tolerations(env, own.list("tolerations"), &path, errors);
}
