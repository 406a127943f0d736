//! APIServices.

use base64::Engine;
use kubelith_meta::call::Call;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{self, NameUse};
use kubelith_meta::object::{Namespacing, validate_object_meta};
use kubelith_meta::{Str, Value};
use kubelith_rules::cells::{Cells, Row, condition};
use kubelith_rules::{Env, Kind};
use kubelith_schema::lifecycle::Part;

pub const API_SERVICE: Kind = Kind {
    group: "apiregistration.k8s.io",
    plural: "apiservices",
    cells: CELLS,

    updates_unconditionally: false,
    prepare_for_create,
    prepare_for_update,
    validate: |_, object| validate(object),
    validate_update: |_, part, object, _| match part {
        Part::Main => validate(object),
        Part::Status => validate_status(object),
        Part::Other(_) => ErrorList::default(),
    },
    reset_fields: |part| match part {
        Part::Main => &[&["status"]],
        Part::Status => &[&["metadata"], &["spec"]],
        Part::Other(_) => &[],
    },
    ..Kind::PLAIN
};

pub const CELLS: Cells = &[("apiservice_service", service), ("apiservice_available", available)];

/// Where the API is served: here, or by a service.
fn service(row: &Row<'_>) -> Option<Value> {
    let Some(service) = row.at(&["spec", "service"]) else { return Some("Local".into()) };
    Some(format!("{}/{}", service.str_at(&["namespace"]), service.str_at(&["name"])).into())
}

fn available(row: &Row<'_>) -> Option<Value> {
    let Some(condition) = condition(row.conditions(), "Available") else { return Some("Unknown".into()) };
    Some(match (condition.str_at(&["status"]), condition.str_at(&["reason"])) {
        (status, reason) if status == "True" || reason.is_empty() => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    })
}

/// Local ones are available from the start: nobody has to be asked.
fn prepare_for_create(_env: &Env, _call: &Call, object: &mut Value) {
    object.set_at(&["status"], Value::object());
    if object.at(&["spec", "service"]).is_none_or(Value::is_null) {
        // The object was made now.
        let now = object.str_at(&["metadata", "creationTimestamp"]).to_owned();
        let available = Value::from([
            ("type", "Available"),
            ("status", "True"),
            ("lastTransitionTime", &now),
            ("reason", "Local"),
            ("message", "Local APIServices are always available"),
        ]);
        object.set_at(&["status", "conditions"], Value::Array(vec![available]));
    }
}

/// A status update changes nothing that people write.
fn prepare_for_update(_env: &Env, _call: &Call, part: Part<'_>, object: &mut Value, old: &Value) {
    if part != Part::Status {
        return;
    }
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        object.copy_at(&["metadata", key], old);
    }
}

pub fn validate(object: &Value) -> ErrorList {
    let spec = Path::new("spec");
    let text = |key: &str| Str::from(object.str_at(&["spec", key]));
    let (group, version) = (text("group"), text("version"));
    let required = format!("{version}.{group}");
    let name_rule = |name: &str, name_use: NameUse| {
        let broken = names::name_is_path_segment(name, name_use);
        match broken.is_empty() && name != required {
            true => vec![format!("must be `spec.version+\".\"+spec.group`: {}", kubelith_meta::text::quote(&required))],
            false => broken,
        }
    };
    let mut errors = validate_object_meta(object.meta(), Namespacing::Forbidden, name_rule, &Path::new("metadata"));
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(Error::required(&spec.child("group"), detail));
    }
    if !group.is_empty() {
        for message in names::is_dns1123_subdomain(&group) {
            errors.push(Error::invalid(&spec.child("group"), group.as_str(), message));
        }
    }
    for message in names::is_dns1035_label(&version) {
        errors.push(Error::invalid(&spec.child("version"), version.as_str(), message));
    }
    for (key, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = object.at(&["spec", key]).and_then(Value::as_i64).unwrap_or(0);
        if priority <= 0 || priority > max {
            let detail = format!("must be positive and less than {max}");
            errors.push(Error::invalid(&spec.child(key), priority, detail));
        }
    }
    errors.extend(validate_service(object, &spec));
    errors
}

fn validate_service(object: &Value, spec: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let bundle = object.str_at(&["spec", "caBundle"]);
    let bundle = base64::engine::general_purpose::STANDARD.decode(bundle).map_or(0, |bytes| bytes.len());
    let insecure = object.at(&["spec", "insecureSkipTLSVerify"]).and_then(Value::as_bool).unwrap_or(false);
    let Some(service) = object.at(&["spec", "service"]).filter(|s| !s.is_null()) else {
        if bundle != 0 {
            let shown = format!("{bundle} bytes");
            let detail = "local APIServices may not have a caBundle";
            errors.push(Error::invalid(&spec.child("caBundle"), shown, detail));
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(Error::invalid(&spec.child("insecureSkipTLSVerify"), insecure, detail));
        }
        return errors;
    };
    let path = spec.child("service");
    for key in ["namespace", "name"] {
        if service.str_at(&[key]).is_empty() {
            errors.push(Error::required(&path.child(key), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(0);
    let messages = names::is_port_number(port);
    if !messages.is_empty() {
        let detail = format!("port is not valid: {}", messages.join(", "));
        errors.push(Error::invalid(&path.child("port"), port, detail));
    }
    if insecure && bundle > 0 {
        let detail = "may not be true if caBundle is present";
        errors.push(Error::invalid(&spec.child("insecureSkipTLSVerify"), insecure, detail));
    }
    errors
}

fn validate_status(object: &Value) -> ErrorList {
    let mut errors = ErrorList::default();
    let status = Path::new("status");
    let path = status.child("conditions");
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[]);
    for (i, condition) in conditions.iter().enumerate() {
        let value = condition.str_at(&["status"]);
        if !matches!(value, "True" | "False" | "Unknown") {
            let supported = ["True", "False", "Unknown"];
            errors.push(Error::not_supported(&path.index(i).child("status"), value, supported));
        }
    }
    errors
}
