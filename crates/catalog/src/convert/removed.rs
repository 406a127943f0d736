//! Versions that no server offers any more, but that can be met in storage, or are spoken to webhooks
//! (SubjectAccessReview v1beta1). What they call differently, or keep elsewhere.

use super::values::{object, object_at, objects_at, put, rename};
use kubelith_meta::{GroupVersion, Map, Str, Value};

const ROLLBACK_ANNOTATION: &str = "deprecated.deployment.rollback.revision";
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// apps/v1beta1 Deployments can ask for a rollback; v1 keeps that in an annotation.
pub fn rollback_to_annotation(deployment: &mut Value) {
    let Some(rollback) = object(deployment, "spec").and_then(|spec| spec.remove("rollbackTo")) else { return };
    let revision = rollback.get("revision").and_then(Value::as_i64).unwrap_or(0);
    deployment.set_at(&["metadata", "annotations", ROLLBACK_ANNOTATION], revision.to_string().into());
}

pub fn rollback_from_annotation(deployment: &mut Value) {
    let revision = deployment.str_at(&["metadata", "annotations", ROLLBACK_ANNOTATION]).parse::<i64>();
    deployment.remove_at(&["metadata", "annotations", ROLLBACK_ANNOTATION]);
    if let Ok(revision) = revision {
        deployment.set_at(&["spec", "rollbackTo"], Value::object());
        deployment.set_at(&["spec", "rollbackTo", "revision"], revision.into());
    }
}

pub fn group_to_groups(review: &mut Value) {
    object(review, "spec").into_iter().for_each(|spec| rename(spec, "group", "groups"));
}

pub fn groups_to_group(review: &mut Value) {
    object(review, "spec").into_iter().for_each(|spec| rename(spec, "groups", "group"));
}

/// v1beta1 slices have the zone and the node's name in a map with whatever else.
pub fn topology_to_zone(slice: &mut Value) {
    for endpoint in objects_at(slice, &["endpoints"]) {
        let Some(Value::Object(mut topology)) = endpoint.remove("topology") else { continue };
        put(endpoint, "zone", topology.remove(ZONE_LABEL));
        if topology.get(HOSTNAME_LABEL).is_some_and(|name| endpoint.get("nodeName") == Some(name)) {
            topology.remove(HOSTNAME_LABEL);
        }
        if !topology.is_empty() {
            endpoint.insert("deprecatedTopology", topology);
        }
    }
}

pub fn zone_to_topology(slice: &mut Value) {
    for endpoint in objects_at(slice, &["endpoints"]) {
        let mut topology = match endpoint.remove("deprecatedTopology") {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        put(&mut topology, ZONE_LABEL, endpoint.remove("zone"));
        if topology.get(HOSTNAME_LABEL).is_none_or(Value::is_empty) {
            put(&mut topology, HOSTNAME_LABEL, endpoint.get("nodeName").cloned());
        }
        if !topology.is_empty() {
            endpoint.insert("topology", topology);
        }
    }
}

pub fn assured_to_nominal(level: &mut Value) {
    let limited = object_at(level, &["spec", "limited"]);
    limited.into_iter().for_each(|l| rename(l, "assuredConcurrencyShares", "nominalConcurrencyShares"));
}

pub fn nominal_to_assured(level: &mut Value) {
    let limited = object_at(level, &["spec", "limited"]);
    limited.into_iter().for_each(|l| rename(l, "nominalConcurrencyShares", "assuredConcurrencyShares"));
}

/// v1beta3 takes zero shares for a missing number, unless this annotation is there.
const ZERO_SHARES_ANNOTATION: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

pub fn zero_shares_from_annotation(level: &mut Value) {
    level.remove_at(&["metadata", "annotations", ZERO_SHARES_ANNOTATION]);
}

pub fn zero_shares_to_annotation(level: &mut Value) {
    let Some(limited) = level.at(&["spec", "limited"]).filter(|l| !l.is_null()) else { return };
    if limited.get("nominalConcurrencyShares").is_none_or(Value::is_empty) {
        level.set_at(&["metadata", "annotations", ZERO_SHARES_ANNOTATION], "".into());
    }
}

pub fn runtime_class_to_v1(class: &mut Value) {
    let Some(map) = class.as_object_mut() else { return };
    let Some(Value::Object(mut spec)) = map.remove("spec") else { return };
    rename(&mut spec, "runtimeHandler", "handler");
    for (key, value) in spec {
        map.insert(key, value);
    }
}

pub fn runtime_class_from_v1(class: &mut Value) {
    let Some(map) = class.as_object_mut() else { return };
    let mut spec = Map::new();
    put(&mut spec, "runtimeHandler", map.remove("handler"));
    put(&mut spec, "overhead", map.remove("overhead"));
    put(&mut spec, "scheduling", map.remove("scheduling"));
    map.insert("spec", spec);
}

/// v1alpha1 names a subject's API by version, v1 by group; and it grants to everyone with a user `*`.
pub fn subjects_to_v1(binding: &mut Value) {
    for subject in objects_at(binding, &["subjects"]) {
        let api_version = subject.remove("apiVersion");
        let group = match subject.get("kind").and_then(Value::as_str) {
            Some("ServiceAccount") => Str::default(),
            Some("User" | "Group") => RBAC_GROUP.into(),
            _ => api_version.and_then(|v| GroupVersion::parse(v.as_str()?)).map(|gv| gv.group).unwrap_or_default(),
        };
        subject.insert("apiGroup", group);
        let is = |key: &str, value: &str| subject.get(key).and_then(Value::as_str) == Some(value);
        if is("kind", "User") && is("name", "*") {
            subject.insert("kind", "Group");
            subject.insert("name", "system:authenticated");
        }
    }
}

pub fn subjects_from_v1(binding: &mut Value) {
    for subject in objects_at(binding, &["subjects"]) {
        let group = subject.remove("apiGroup").unwrap_or_default();
        let api_version = match (subject.get("kind").and_then(Value::as_str), group.as_str().unwrap_or("")) {
            (Some("ServiceAccount"), "") => "v1".to_owned(),
            (Some("User" | "Group"), RBAC_GROUP) => format!("{RBAC_GROUP}/v1alpha1"),
            (_, "") => String::new(),
            (_, group) => format!("{group}/"),
        };
        subject.insert("apiVersion", api_version);
    }
}

/// v1beta1 has a backend's service flat, and calls the default backend just backend.
pub fn ingress_to_v1(ingress: &mut Value) {
    let Some(spec) = object(ingress, "spec") else { return };
    rename(spec, "backend", "defaultBackend");
    each_backend(spec, "defaultBackend", |backend| {
        let (name, port) = (backend.remove("serviceName"), backend.remove("servicePort"));
        if name.is_none() && matches!(port, None | Some(Value::Int(0))) {
            return;
        }
        let mut service = Map::new();
        put(&mut service, "name", name);
        let port = match port {
            Some(Value::Int(number)) => Map::from_iter([("number", number)]),
            Some(Value::String(name)) => Map::from_iter([("name", name)]),
            _ => Map::new(),
        };
        service.insert("port", port);
        backend.insert("service", service);
    });
}

pub fn ingress_from_v1(ingress: &mut Value) {
    let Some(spec) = object(ingress, "spec") else { return };
    each_backend(spec, "defaultBackend", |backend| {
        let Some(mut service) = backend.remove("service") else { return };
        put(backend, "serviceName", service.remove_at(&["name"]));
        let port = service.remove_at(&["port", "name"]).or_else(|| service.remove_at(&["port", "number"]));
        put(backend, "servicePort", port);
    });
    rename(spec, "defaultBackend", "backend");
}

fn each_backend(spec: &mut Map, default: &str, change: impl Fn(&mut Map)) {
    spec.get_mut(default).and_then(Value::as_object_mut).into_iter().for_each(&change);
    let rules = spec.get_mut("rules").and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    for rule in rules {
        for path in objects_at(rule, &["http", "paths"]) {
            path.get_mut("backend").and_then(Value::as_object_mut).into_iter().for_each(&change);
        }
    }
}
