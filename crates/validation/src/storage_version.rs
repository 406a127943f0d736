//! What servers say they store objects as, and the moves from one version to another.

use crate::Rules;
use crate::common::{Fields, SPEC, immutable, invalid_all, member, meta, meta_update, name_full, qualified_name};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{Messages, NameUse, is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_conditions};
use std::collections::BTreeSet;

pub fn rules(plural: &str) -> Option<Rules> {
    match plural {
        "storageversions" => Some(VERSION),
        "storageversionmigrations" => Some(MIGRATION),
        _ => None,
    }
}

const STATUS: Path<'static> = Path::new("status");

const VERSION: Rules = Rules {
    create: |_, version| {
        let mut errors = meta(version, Namespacing::Forbidden, version_name);
        check_status(member(version, "status"), &mut errors);
        errors
    },
    update: |request, new, _| {
        let mut errors = ErrorList::new();
        if request.subresource == "status" {
            check_status(member(new, "status"), &mut errors);
        }
        errors
    },
};

fn version_name(name: &str, _: NameUse) -> Messages {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".into()];
    };
    let group = is_dns1123_subdomain(group).into_iter().map(|m| format!("the group segment {m}"));
    let resource = is_dns1035_label(resource).into_iter().map(|m| format!("the resource segment {m}"));
    group.chain(resource).collect()
}

fn check_status(status: &Value, errors: &mut ErrorList) {
    let servers = status.list("storageVersions");
    let mut ids = BTreeSet::new();
    for (i, server) in servers.iter().enumerate() {
        let path = STATUS.item("storageVersions", i);
        let id = server.text("apiServerID");
        if !ids.insert(id) {
            errors.push(Error::duplicate(&path.child("apiServerID"), id));
        }
        check_server(server, &path, errors);
    }
    check_common(status, errors);
    let conditions = status.list("conditions");
    for (i, condition) in conditions.iter().enumerate() {
        // The reference leaves out where they are.
        let path = STATUS.index(i);
        let kind = condition.text("type");
        if let Some(other) = conditions[..i].iter().rposition(|other| other.text("type") == kind) {
            let detail = format!("the type of the condition is not unique, it also appears in conditions[{other}]");
            errors.push(Error::invalid(&path.child("type"), kind, detail));
        }
        qualified_name(kind, &path.child("type"), errors);
        qualified_name(condition.text("status"), &path.child("status"), errors);
        for key in ["reason", "message"] {
            if condition.text(key).is_empty() {
                errors.push(Error::required(&path.child(key), ""));
            }
        }
    }
}

fn check_server(server: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    name_full(name_is_dns_subdomain, server.text("apiServerID"), &path.child("apiServerID"), errors);
    let encoding = server.text("encodingVersion");
    check_api_version(encoding, &path.child("encodingVersion"), errors);
    let decodable = server.texts("decodableVersions");
    for (i, version) in decodable.iter().enumerate() {
        check_api_version(version, &path.item("decodableVersions", i), errors);
    }
    if !decodable.contains(&encoding) {
        let detail = format!("decodableVersions must include encodingVersion {encoding}");
        errors.push(Error::invalid(&path.child("decodableVersions"), member(server, "decodableVersions"), detail));
    }
    for (i, version) in server.texts("servedVersions").into_iter().enumerate() {
        let path = path.item("servedVersions", i);
        check_api_version(version, &path, errors);
        if !decodable.contains(&version) {
            let known = decodable.join(" ");
            let detail =
                format!("individual served version : {version} must be included in decodableVersions : [{known}]");
            errors.push(Error::invalid(&path, version, detail));
        }
    }
}

fn check_api_version(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    const EMPTY: &str = "must be non-empty";
    let mut problems: Vec<String> = Vec::new();
    let (group, version) = text.split_once('/').map_or((None, text), |(group, version)| (Some(group), version));
    if version.contains('/') {
        let rule = "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an \
                    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex \
                    used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
        let tail = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')";
        problems.push(format!("an apiVersion is {rule} {tail}"));
    } else {
        match group {
            Some("") => problems.push(format!("group part: {EMPTY}")),
            Some(group) => problems.extend(is_dns1123_subdomain(group).iter().map(|m| format!("group part: {m}"))),
            None => {}
        }
        match version {
            "" => problems.push(format!("version part: {EMPTY}")),
            _ => problems.extend(is_dns1035_label(version).iter().map(|m| format!("version part: {m}"))),
        }
    }
    if !problems.is_empty() {
        errors.push(Error::invalid(path, text, problems.join(",")));
    }
}

/// The version that all servers store.
fn check_common(status: &Value, errors: &mut ErrorList) {
    let servers = status.list("storageVersions");
    let first = servers.first().map(|server| server.text("encodingVersion"));
    let common = first.filter(|first| servers.iter().all(|server| server.text("encodingVersion") == *first));
    let told = status.some("commonEncodingVersion").map(Value::or_empty);
    let path = STATUS.child("commonEncodingVersion");
    match (common, told) {
        (None, Some(told)) => {
            let detail = "should be nil if servers do not agree on the same encoding version, or if there is no server \
                          reporting the supported versions yet";
            errors.push(Error::invalid(&path, told, detail));
        }
        (Some(common), None) => {
            let detail = format!("the common encoding version is {common}");
            errors.push(Error::invalid(&path, BadValue::text("null"), detail));
        }
        (Some(common), Some(told)) if common != told => {
            errors.push(Error::invalid(&path, told, format!("the actual common encoding version is {common}")));
        }
        _ => {}
    }
}

const MIGRATION: Rules = Rules {
    create: |_, migration| check_migration(migration),
    update: |request, new, old| {
        if request.subresource == "status" {
            return check_progress(new, old);
        }
        let mut errors = check_migration(new);
        errors.extend(meta_update(new, old));
        immutable(new.get("spec"), old.get("spec"), &SPEC, &mut errors);
        errors
    },
};

fn check_migration(migration: &Value) -> ErrorList {
    let mut errors = meta(migration, Namespacing::Forbidden, name_is_dns_subdomain);
    let of = member(member(migration, "spec"), "resource");
    let path = SPEC.child("resource");
    let joined = |problems: Messages| if problems.is_empty() { problems } else { vec![problems.join(",")] };
    match of.text("resource") {
        "" => errors.push(Error::required(&path.child("resource"), "resource is required to be set")),
        name => invalid_all(joined(is_dns1035_label(name)), &path.child("resource"), name, &mut errors),
    }
    match of.text("group") {
        "" => {}
        group => invalid_all(joined(is_dns1123_subdomain(group)), &path.child("group"), group, &mut errors),
    }
    errors
}

fn check_progress(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    let (status, before) = (member(new, "status"), member(old, "status"));
    let (version, old_version) = (status.text("resourceVersion"), before.text("resourceVersion"));
    let path = STATUS.child("resourceVersion");
    if let Some(why) = version_problem(version).filter(|_| !version.is_empty()) {
        errors.push(Error::invalid(&path, version, why));
    }
    errors.extend(validate_conditions(status.list("conditions"), &STATUS.child("conditions")));
    if !old_version.is_empty() && version != old_version {
        errors.push(Error::invalid(&path, version, "field is immutable"));
    }
    let holds = |status: &Value, kind: &str| {
        let condition = status.list("conditions").iter().find(|condition| condition.text("type") == kind);
        condition.is_some_and(|condition| condition.text("status") == "True")
    };
    let [succeeded, failed] = ["Succeeded", "Failed"].map(|kind| (holds(before, kind), holds(status, kind)));
    let mut refuse = |detail: &str| {
        let shown = crate::internal::shown("[]Condition", status.get("conditions"));
        errors.push(Error::invalid(&STATUS.child("conditions"), shown, detail));
    };
    if succeeded.1 && failed.1 {
        refuse("Both success and failed conditions cannot be true at the same time");
    }
    if succeeded == (true, false) {
        refuse("Success condition cannot be set to false once it is true");
    }
    if failed == (true, false) {
        refuse("Failed condition cannot be set to false once it is true");
    }
    errors
}

/// Why a text is no resource version that can be compared.
fn version_problem(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("resource version is empty".into());
    }
    let is_number = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    (!is_number).then(|| format!("resource version is not well formed: {text}"))
}

#[cfg(test)]
mod tests {
    use crate::tests::{check_create, check_update};

    #[test]
    fn versions() {
        let cases = [
            ("apps.deployments", "{}", vec![]),
            ("x", "{}", vec!["metadata.name: Invalid value: \"x\": name must be in the form of <group>.<resource>"]),
            (
                "a.b",
                r#"{"storageVersions":[{"apiServerID":"s","encodingVersion":"v1","decodableVersions":["v2"],
                    "servedVersions":["v3"]},{"apiServerID":"s","encodingVersion":"v2","decodableVersions":["v2"]}],
                    "commonEncodingVersion":"v1","conditions":[{"type":"A","status":"True"}]}"#,
                vec![
                    "status.storageVersions[0].decodableVersions: Invalid value: [\"v2\"]: decodableVersions must include \
                     encodingVersion v1",
                    "status.storageVersions[0].servedVersions[0]: Invalid value: \"v3\": individual served version : v3 must \
                     be included in decodableVersions : [v2]",
                    "status.storageVersions[1].apiServerID: Duplicate value: \"s\"",
                    "status.commonEncodingVersion: Invalid value: \"v1\": should be nil if servers do not agree on the same \
                     encoding version, or if there is no server reporting the supported versions yet",
                    "status[0].reason: Required value",
                    "status[0].message: Required value",
                ],
            ),
        ];
        for (name, status, expected) in cases {
            let object = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{}},"status":{status}}}"#);
            assert_eq!(check_create("internal.apiserver.k8s.io", "storageversions", &object), expected, "{status}");
        }
    }

    #[test]
    fn migrations() {
        let group = "storagemigration.k8s.io";
        let object = |more: &str| format!(r#"{{"metadata":{{"name":"m","resourceVersion":"1"}},{more}}}"#);
        let errors = check_create(group, "storageversionmigrations", &object(r#""spec":{}"#));
        assert_eq!(errors, ["spec.resource.resource: Required value: resource is required to be set"]);
        let condition = |kind: &str, status: &str| {
            let rest = r#""reason":"r","message":"m","lastTransitionTime":"2020-01-01T00:00:00Z""#;
            object(&format!(r#""status":{{"conditions":[{{"type":"{kind}","status":"{status}",{rest}}}]}}"#))
        };
        let (new, old) = (condition("Succeeded", "False"), condition("Succeeded", "True"));
        let errors = check_update(group, "storageversionmigrations", "status", &new, &old);
        assert_eq!(
            errors,
            ["status.conditions: Invalid value: [{\"type\":\"Succeeded\",\"status\":\"False\",\
              \"lastTransitionTime\":\"2020-01-01T00:00:00Z\",\"reason\":\"r\",\"message\":\"m\"}]: Success condition \
              cannot be set to false once it is true"]
        );
    }
}
