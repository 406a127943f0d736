//! Annotations of pods that mean something to the server, some of which are older ways to say what a field says.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::text::Quoted;
use kubelith_rules::Env;
use kubelith_rules::common::{Fields, descending_path, member};

pub const MIRROR: &str = "kubernetes.io/config.mirror";
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Those of a pod or a template with this spec.
pub fn check(env: &Env, metadata: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let annotations = member(metadata, "annotations");
    if let Some(value) = annotations.get(MIRROR).and_then(Value::as_str)
        && spec.text("nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(Error::invalid(&path.key(MIRROR), value, detail));
    }
    if let Some(cost) = annotations.get(DELETION_COST).and_then(Value::as_str).filter(|_| env.features.deletion_cost) {
        // A number as people write it: no plus, no zeros in front.
        let is_right = cost.parse::<i32>().is_ok_and(|n| n.to_string() == cost);
        if !is_right {
            errors.push(Error::invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer"));
        }
    }
    let all = || annotations.as_object().into_iter().flat_map(|m| m.iter());
    let of_pod = all().filter(|(key, _)| *key == SECCOMP_OF_POD);
    for (key, value) in of_pod.chain(all().filter(|(key, _)| key.starts_with(SECCOMP_OF_CONTAINER))) {
        check_seccomp(value.as_str().unwrap_or_default(), &path.child(key), errors);
    }
    for (key, value) in all() {
        let (Some(container), Some(profile)) = (key.strip_prefix(APP_ARMOR), value.as_str()) else { continue };
        if !containers(spec).any(|(_, _, c)| c.text("name") == container) {
            errors.push(Error::invalid(&path.key(key), container, "container not found"));
        }
        let is_known = matches!(profile, "" | "runtime/default" | "unconfined") || profile.starts_with("localhost/");
        if !is_known {
            let detail = format!("invalid AppArmor profile name: {}", Quoted(profile));
            errors.push(Error::invalid(&path.key(key), profile, detail));
        }
    }
}

fn check_seccomp(profile: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix("localhost/") {
            Some(file) => descending_path(file, path, errors),
            None => errors.push(Error::invalid(path, profile, "must be a valid seccomp profile")),
        },
    }
}

/// All containers: the list they are in, their place there, and themselves.
fn containers(spec: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(|list| spec.list(list).iter().enumerate().map(move |(i, c)| (list, i, c)))
}

/// Who says the same in both ways says the same. `path` is that of the spec.
pub fn check_match(metadata: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let annotations = member(metadata, "annotations");
    let is_about_field =
        |key: &str| key == SECCOMP_OF_POD || key.starts_with(SECCOMP_OF_CONTAINER) || key.starts_with(APP_ARMOR);
    if !annotations.as_object().is_some_and(|all| all.keys().any(is_about_field)) {
        return;
    }
    let annotation = |key: &str| annotations.get(key).and_then(Value::as_str);
    let of_pod = |key: &str| member(spec, "securityContext").some(key);
    if let (Some(profile), Some(text)) = (of_pod("seccompProfile"), annotation(SECCOMP_OF_POD)) {
        let path = path.child("securityContext");
        check_one_match("seccomp", profile, text, &path.child("seccompProfile"), errors);
    }
    let own = |container: &'_ Value, key: &str| member(container, "securityContext").some(key).cloned();
    for (list, i, container) in containers(spec) {
        let key = format!("{SECCOMP_OF_CONTAINER}{}", container.text("name"));
        if let (Some(profile), Some(text)) = (own(container, "seccompProfile"), annotation(&key)) {
            let path = path.item(list, i);
            let path = path.child("securityContext");
            check_one_match("seccomp", &profile, text, &path.child("seccompProfile"), errors);
        }
    }
    if member(spec, "os").text("name") == "windows" {
        return;
    }
    for (list, i, container) in containers(spec) {
        let key = format!("{APP_ARMOR}{}", container.text("name"));
        let profile = own(container, "appArmorProfile").or_else(|| of_pod("appArmorProfile").cloned());
        if let (Some(profile), Some(text)) = (profile, annotation(&key)) {
            let path = path.item(list, i);
            let path = path.child("securityContext");
            check_one_match("apparmor", &profile, text, &path.child("appArmorProfile"), errors);
        }
    }
}

fn check_one_match(what: &str, profile: &Value, annotation: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let other_type =
        || Error::forbidden(&path.child("type"), format!("{what} type in annotation and field must match"));
    match profile.text("type") {
        "Unconfined" if annotation != "unconfined" => errors.push(other_type()),
        "RuntimeDefault" => {
            let is_default = annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default");
            if !is_default {
                errors.push(other_type());
            }
        }
        "Localhost" => match annotation.strip_prefix("localhost/") {
            None => errors.push(other_type()),
            Some(file) if profile.some("localhostProfile").and_then(Value::as_str) != Some(file) => {
                let detail = format!("{what} profile in annotation and field must match");
                errors.push(Error::forbidden(&path.child("localhostProfile"), detail));
            }
            Some(_) => {}
        },
        _ => {}
    }
}
