//! The kinds that the rules of a policy name, where they name them one by one.

use super::VersionedKind;
use crate::world::Known;
use kubelith_meta::{GroupVersion, Value};
use std::collections::BTreeSet;

/// A rule that names more kinds ends the search.
const MAX_KINDS: usize = 10;

/// In the order of groups, versions and kinds. Rules with an asterisk name no kinds, and subresources none of their own.
pub fn to_check(policy: &Value, known: &[Known]) -> Vec<VersionedKind> {
    let rules = policy.at(&["spec", "matchConstraints", "resourceRules"]).and_then(Value::as_array).unwrap_or_default();
    let mut kinds = BTreeSet::new();
    for rule in rules {
        let (groups, versions) = (named(rule, "apiGroups"), named(rule, "apiVersions"));
        let mut resources = words(rule, "resources");
        resources.retain(|resource| !resource.contains(['*', '/']));
        resources.sort_unstable();
        let mut count = 0;
        for group in &groups {
            for version in &versions {
                for resource in &resources {
                    for kind in kinds_of(known, group, version, resource) {
                        kinds.insert(kind);
                        count += 1;
                        if count == MAX_KINDS {
                            return kinds.into_iter().collect();
                        }
                    }
                }
            }
        }
    }
    kinds.into_iter().collect()
}

/// The kind of the parameters, if it can be read.
pub fn of_params(policy: &Value) -> Option<VersionedKind> {
    let params = policy.at(&["spec", "paramKind"]).filter(|params| !params.is_null())?;
    let version = GroupVersion::parse(params.str_at(&["apiVersion"]))?;
    let kind = params.str_at(&["kind"]).into();
    Some(VersionedKind { group: version.group, version: version.version, kind })
}

fn words<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    let words = rule.get(field).and_then(Value::as_array).unwrap_or_default();
    words.iter().filter_map(Value::as_str).collect()
}

/// Sorted; nothing if one of them is a pattern.
fn named<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    let mut words = words(rule, field);
    if words.iter().any(|word| word.contains('*')) {
        return Vec::new();
    }
    words.sort_unstable();
    words
}

/// What a client's mapping from resources to kinds finds: without a group, the resources of all groups.
fn kinds_of<'a>(
    known: &'a [Known],
    group: &'a str,
    version: &'a str,
    resource: &'a str,
) -> impl Iterator<Item = VersionedKind> + 'a {
    let fits = move |known: &&Known| {
        let found = &known.resource;
        (group.is_empty() || found.group == group) && found.version == version && found.resource == resource
    };
    known.iter().filter(fits).map(|known| VersionedKind {
        group: known.resource.group.clone(),
        version: known.resource.version.clone(),
        kind: known.kind.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;
    use kubelith_meta::GroupVersionResource;

    fn known(group: &str, version: &str, plural: &str, kind: &str) -> Known {
        let resource = GroupVersionResource::new(group, version, plural);
        Known { resource, kind: kind.into(), namespaced: true, verbs: Vec::new() }
    }

    #[test]
    fn rules_name_kinds() {
        let mut all = vec![
            known("", "v1", "pods", "Pod"),
            known("apps", "v1", "deployments", "Deployment"),
            known("apps", "v1", "statefulsets", "StatefulSet"),
            known("events.k8s.io", "v1", "events", "Event"),
            known("", "v1", "events", "Event"),
        ];
        all.extend((0..12).map(|i| known("many", "v1", &format!("r{i:02}"), &format!("K{i:02}"))));
        let many = (0..12).map(|i| format!("\"r{i:02}\"")).collect::<Vec<_>>().join(",");
        for (rules, want) in [
            (
                r#"{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["statefulsets","deployments","deployments/scale"]}"#
                    .to_owned(),
                "apps/v1, Kind=Deployment;apps/v1, Kind=StatefulSet",
            ),
            (r#"{"apiGroups":["*"],"apiVersions":["v1"],"resources":["pods"]}"#.to_owned(), ""),
            (r#"{"apiGroups":[""],"apiVersions":["*"],"resources":["pods"]}"#.to_owned(), ""),
            (r#"{"apiGroups":[""],"apiVersions":["v1"],"resources":["*","pods"]}"#.to_owned(), "/v1, Kind=Pod"),
            (
                r#"{"apiGroups":[""],"apiVersions":["v1"],"resources":["events"]}"#.to_owned(),
                "/v1, Kind=Event;events.k8s.io/v1, Kind=Event",
            ),
            (r#"{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["absent"]}"#.to_owned(), ""),
            (
                format!(r#"{{"apiGroups":["many"],"apiVersions":["v1"],"resources":[{many}]}}"#),
                "many/v1, Kind=K00;many/v1, Kind=K01;many/v1, Kind=K02;many/v1, Kind=K03;many/v1, Kind=K04;many/v1, Kind=K05;\
                 many/v1, Kind=K06;many/v1, Kind=K07;many/v1, Kind=K08;many/v1, Kind=K09",
            ),
        ] {
            let policy = format!(r#"{{"spec":{{"matchConstraints":{{"resourceRules":[{rules}]}}}}}}"#);
            let found = to_check(&json::parse(policy.as_bytes()).unwrap(), &all);
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>().join(";"), want, "{rules}");
        }
    }
}
