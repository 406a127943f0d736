//! Environment variables and what they are taken from; also fields and resources that volumes show.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, is_config_map_key, is_relaxed_env_var_name, name_is_dns_subdomain};
use kubelith_meta::{Value, members};
use kubelith_rules::Env;
use kubelith_rules::common::{Fields, dns_label, invalid_all, name_full, no_backsteps, qualified_name, quantity_text};

const FIELDS_OF_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
pub const FIELDS_OF_VOLUMES: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub fn check(env: &Env, variables: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, variable) in variables.iter().enumerate() {
        let path = path.item("env", i);
        members!(variable => name: "name", value: "value", source: "valueFrom");
        let name = name.or_empty();
        if name.is_empty() {
            errors.push(Error::required(&path.child("name"), ""));
        } else {
            invalid_all(is_relaxed_env_var_name(name), &path.child("name"), name, errors);
        }
        if let Some(source) = source.set() {
            check_source(env, source, value.or_empty(), &path.child("valueFrom"), errors);
        }
    }
}

/// What all variables are taken from.
pub fn check_sources(sources: &[Value], list: &Path<'_>, errors: &mut ErrorList) {
    for (i, source) in sources.iter().enumerate() {
        let path = list.index(i);
        let prefix = source.text("prefix");
        if !prefix.is_empty() {
            invalid_all(is_relaxed_env_var_name(prefix), &path.child("prefix"), prefix, errors);
        }
        let mut count = 0;
        for key in ["configMapRef", "secretRef"] {
            let Some(reference) = source.some(key) else { continue };
            count += 1;
            let (name, at) = (reference.text("name"), path.child(key));
            if name.is_empty() {
                errors.push(Error::required(&at.child("name"), ""));
            } else {
                invalid_all(name_is_dns_subdomain(name, NameUse::Prefix), &at.child("name"), name, errors);
            }
        }
        match count {
            0 => errors.push(Error::invalid(list, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(Error::invalid(list, "", "may not have more than one field specified at a time")),
        }
    }
}

fn check_source(env: &Env, source: &Value, value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let mut count = 0;
    for key in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] {
        let Some(reference) = source.some(key) else { continue };
        count += 1;
        let path = path.child(key);
        match key {
            "fieldRef" => field_reference(reference, &FIELDS_OF_VARIABLES, &path, errors),
            "resourceFieldRef" => resource_reference(reference, Holder::Container, &path, errors),
            "fileKeyRef" => {
                for (key, text) in ["key", "volumeName", "path"].map(|key| (key, reference.text(key))) {
                    let path = path.child(key);
                    match key {
                        _ if text.is_empty() => errors.push(Error::required(&path, "")),
                        "key" => invalid_all(is_relaxed_env_var_name(text), &path, text, errors),
                        "volumeName" => dns_label(text, &path, errors),
                        _ => no_backsteps(text, &path, errors),
                    }
                }
            }
            _ => {
                name_full(name_is_dns_subdomain, reference.text("name"), &path.child("name"), errors);
                let key = reference.text("key");
                if key.is_empty() {
                    errors.push(Error::required(&path.child("key"), ""));
                } else {
                    invalid_all(is_config_map_key(key), &path.child("key"), key, errors);
                }
            }
        }
    }
    if count == 0 {
        let detail = match env.features.environment_files {
            true => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
            false => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        };
        errors.push(Error::invalid(path, "", detail));
    } else if !value.is_empty() {
        errors.push(Error::invalid(path, "", "may not be specified when `value` is not empty"));
    } else if count > 1 {
        errors.push(Error::invalid(path, "", "may not have more than one field specified at a time"));
    }
}

/// A field of the pod itself.
pub fn field_reference(reference: &Value, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    let (version, field) = (reference.text("apiVersion"), reference.text("fieldPath"));
    for (key, value) in [("apiVersion", version), ("fieldPath", field)] {
        if value.is_empty() {
            return errors.push(Error::required(&path.child(key), ""));
        }
    }
    let subscripted = field.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    if let Some(problem) = not_a_pod_field(version, field, subscripted) {
        let detail = format!("error converting fieldPath: {problem}");
        return errors.push(Error::invalid(&path.child("fieldPath"), field, detail));
    }
    match subscripted {
        Some(("metadata.annotations", key)) => qualified_name(&key.to_lowercase(), path, errors),
        Some(("metadata.labels", key)) => qualified_name(key, path, errors),
        Some((base, _)) => errors.push(Error::invalid(path, base, "does not support subscript")),
        None if !known.contains(&field) => {
            errors.push(Error::not_supported(&path.child("fieldPath"), field, known));
        }
        None => {}
    }
}

fn not_a_pod_field(version: &str, field: &str, subscripted: Option<(&str, &str)>) -> Option<String> {
    if version != "v1" {
        return Some(format!("unsupported pod version: {version}"));
    }
    match subscripted {
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {field}")),
        None => {
            let known = FIELDS_OF_VOLUMES.contains(&field)
                || FIELDS_OF_VARIABLES.contains(&field)
                || matches!(field, "spec.restartPolicy" | "spec.schedulerName" | "status.phase" | "spec.host");
            (!known).then(|| format!("field label not supported: {field}"))
        }
    }
}

/// Who shows a resource: volumes must name the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Container,
    Volume,
}

pub fn resource_reference(reference: &Value, holder: Holder, path: &Path<'_>, errors: &mut ErrorList) {
    let resource = reference.text("resource");
    let is_huge = ["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if holder == Holder::Volume && reference.text("containerName").is_empty() {
        errors.push(Error::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(Error::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !is_huge {
        errors.push(Error::not_supported(&path.child("resource"), resource, RESOURCES));
    }
    let divisor = reference.some("divisor").map(quantity_text).filter(|d| d != "0");
    let Some(divisor) = divisor else { return };
    const BYTES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let (known, detail): (&[&str], String) = match resource.rsplit_once('.').map(|(_, what)| what) {
        Some("cpu") => (&["1m", "1"], "only divisor's values 1m and 1 are supported with the cpu resource".into()),
        Some("memory") => (&BYTES, of_bytes("memory")),
        Some("ephemeral-storage") => (&BYTES, of_bytes("local ephemeral storage")),
        _ if is_huge => (&BYTES, of_bytes("hugepages")),
        _ => return,
    };
    if !known.contains(&divisor.as_str()) {
        errors.push(Error::invalid(&path.child("divisor"), resource, detail));
    }
}

fn of_bytes(what: &str) -> String {
    format!(
        "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {what} \
         resource"
    )
}

/// Files with variables are in volumes that the pod brings itself.
pub fn check_files(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (i, container) in spec.list(list).iter().enumerate() {
            for (j, variable) in container.list("env").iter().enumerate() {
                let Some(file) = variable.get("valueFrom").and_then(|from| from.some("fileKeyRef")) else { continue };
                let name = file.text("volumeName");
                let path = path.item(list, i);
                let path = path.item("env", j);
                let path = path.children(&["valueFrom", "fileKeyRef", "volumeName"]);
                match spec.list("volumes").iter().rfind(|volume| volume.text("name") == name) {
                    None => errors.push(Error::not_found(&path, name)),
                    Some(volume) if !volume.has("emptyDir") => {
                        errors.push(Error::invalid(&path, name, "referenced volume must be of type emptyDir"));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
