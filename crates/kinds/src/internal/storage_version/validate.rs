//! What each server stores.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{Messages, NameUse, is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, member, meta, name_full, qualified_name};
use std::collections::BTreeSet;

pub const STATUS: Path<'static> = Path::new("status");

pub const RULES: Rules = Rules {
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
