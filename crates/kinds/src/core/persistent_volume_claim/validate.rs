//! What may change of a claim, and its status.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_pods::claim::{basic_resource, check_claim};
use kubelith_rules::common::{
    Fields, IMMUTABLE, SPEC, immutable, member, meta, meta_update, qualified_name, quantity, quantity_not_negative,
};
use kubelith_rules::{Rules, internal};

pub const RULES: Rules = Rules {
    create: |_, claim| {
        let mut errors = meta(claim, Namespacing::Required, name_is_dns_subdomain);
        check_claim(member(claim, "spec"), &SPEC, &mut errors);
        errors
    },
    update: |request, new, old| match request.subresource {
        "status" => claim_status(new, old),
        _ => claim_update(new, old),
    },
};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

fn claim_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    errors.extend(meta(new, Namespacing::Required, name_is_dns_subdomain));
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    check_claim(spec, &SPEC, &mut errors);
    check_claim_rest(new, old, &mut errors);
    let size = |spec: &Value| spec.at(&["resources", "requests", "storage"]).and_then(quantity);
    if size(spec) < size(before) {
        let kept = old.at(&["status", "capacity", "storage"]).and_then(quantity);
        if size(spec) <= Some(kept.unwrap_or_default()) {
            let path = SPEC.children(&["resources", "requests", "storage"]);
            errors.push(Error::forbidden(&path, "field can not be less than status.capacity"));
        }
    }
    immutable(spec.get("volumeMode"), before.get("volumeMode"), &Path::new("volumeMode"), &mut errors);
    let current = old.at(&["status", "currentVolumeAttributesClassName"]).is_some_and(|v| !v.is_null());
    let key = "volumeAttributesClassName";
    if current && spec.some(key) != before.some(key) {
        let to = match spec.some(key).and_then(Value::as_str) {
            None => Some("nil"),
            Some("") => Some("empty string"),
            Some(_) => None,
        };
        if let Some(to) = to {
            let detail = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
            errors.push(Error::forbidden(&SPEC.child(key), detail));
        }
    }
    errors
}

/// What a claim asks for stays, but for its size and attributes once it is bound, and for what is found later: its volume
/// and its class.
fn check_claim_rest(new: &Value, old: &Value, errors: &mut ErrorList) {
    let (mut spec, mut before) = (member(new, "spec").clone(), member(old, "spec").clone());
    if before.text("volumeName").is_empty() {
        put(&mut before, &["volumeName"], spec.get("volumeName"));
    }
    let [own_class, old_class] = [&spec, &before].map(|s| s.some("storageClassName").and_then(Value::as_str));
    let [own_note, old_note] = [new, old].map(|object| object.meta().annotation(CLASS_ANNOTATION));
    let is_moved = old_note.is_some()
        && old_class.is_none()
        && own_class == old_note
        && (own_note.is_none() || own_note == old_note);
    if is_moved {
        spec.make_object().remove("storageClassName");
    } else {
        let (own, old) = (own_note.unwrap_or_default(), old_note.unwrap_or_default());
        if own != old {
            let path = Path::of(&["metadata", "annotations"]);
            errors.push(Error::invalid(&path.child(CLASS_ANNOTATION), own, IMMUTABLE));
        }
        let is_first = own_class.is_some() && old_class.is_none();
        if is_first && (old_note.is_none() || own_class == old_note) {
            spec.make_object().remove("storageClassName");
        }
    }
    if new.str_at(&["status", "phase"]) == "Bound" {
        if member(&spec, "resources").map("requests").is_some() {
            // The reference puts a zero where nothing was asked for before.
            let size = before.at(&["resources", "requests", "storage"]).cloned();
            spec.set_at(&["resources", "requests", "storage"], size.unwrap_or_else(|| "0".into()));
        }
        put(&mut spec, &["volumeAttributesClassName"], before.get("volumeAttributesClassName"));
    }
    if !internal::same("PersistentVolumeClaimSpec", Some(&spec), Some(&before)) {
        let difference = internal::difference("PersistentVolumeClaimSpec", &before, &spec);
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{difference}"
        );
        errors.push(Error::forbidden(&SPEC, detail));
    }
}

pub fn put(object: &mut Value, path: &[&str], value: Option<&Value>) {
    match value {
        Some(value) => object.set_at(path, value.clone()),
        None => drop(object.remove_at(path)),
    }
}

fn claim_status(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if new.meta().resource_version().is_empty() {
        errors.push(Error::required(&Path::new("resourceVersion"), ""));
    }
    if member(new, "spec").list("accessModes").is_empty() {
        errors.push(Error::required(&Path::of(&["Spec", "accessModes"]), ""));
    }
    let capacity = Path::of(&["status", "capacity"]);
    for (name, value) in member(new, "status").entries("capacity") {
        basic_resource(value, &capacity.key(name), &mut errors);
    }
    check_expansion(member(new, "status"), &mut errors);
    errors
}

/// How far the volume has grown.
fn check_expansion(status: &Value, errors: &mut ErrorList) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let path = Path::of(&["status", "allocatedResourceStatuses"]);
    for (name, state) in status.entries("allocatedResourceStatuses") {
        check_resource_key(name, &path, errors);
        if !state.as_str().is_some_and(|state| STATES.contains(&state)) {
            let mut known = STATES;
            known.sort_unstable();
            errors.push(Error::not_supported(&path, BadValue::json(name), known));
        }
    }
    let path = Path::of(&["status", "allocatedResources"]);
    for (name, amount) in status.entries("allocatedResources") {
        let count = errors.len();
        check_resource_key(name, &path, errors);
        if errors.len() == count {
            basic_resource(amount, &path.key(name), errors);
        }
        if errors.len() == count {
            quantity_not_negative(amount, &path.key(name), errors);
        }
    }
}

/// Of the resources that Kubernetes itself knows, a claim is about storage only.
fn check_resource_key(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let count = errors.len();
    qualified_name(name, path, errors);
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if errors.len() == count && is_native && name != "storage" {
        errors.push(Error::not_supported(path, name, ["storage"]));
    }
}
