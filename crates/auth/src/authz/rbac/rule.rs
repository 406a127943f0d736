//! One rule of a role: what it allows, and how messages print it.

use crate::text::quote_list;
use crate::traits::Attributes;
use kubelith_meta::{Map, Str, Value};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRule {
    pub verbs: Vec<Str>,
    pub api_groups: Vec<Str>,
    pub resources: Vec<Str>,
    pub resource_names: Vec<Str>,
    pub non_resource_urls: Vec<Str>,
}

impl PolicyRule {
    pub fn from_value(rule: &Value) -> PolicyRule {
        let list = |key: &str| {
            let values = rule.get(key).and_then(Value::as_array).unwrap_or_default();
            values.iter().filter_map(Value::as_str).map(Str::from).collect()
        };
        PolicyRule {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// The rules of a Role or ClusterRole.
    pub fn list_from(role: &Value) -> Vec<PolicyRule> {
        role.get("rules").and_then(Value::as_array).unwrap_or_default().iter().map(PolicyRule::from_value).collect()
    }

    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        let lists = [
            ("apiGroups", &self.api_groups),
            ("nonResourceURLs", &self.non_resource_urls),
            ("resourceNames", &self.resource_names),
            ("resources", &self.resources),
        ];
        for (key, list) in lists {
            if !list.is_empty() {
                map.insert(key, list.clone());
            }
        }
        map.insert("verbs", self.verbs.clone());
        Value::Object(map)
    }

    pub fn allows(&self, a: &Attributes) -> bool {
        if a.resource_request {
            has_or_all(&self.verbs, &a.verb)
                && has_or_all(&self.api_groups, &a.group)
                && self.resources.iter().any(|r| resource_matches(r, &a.resource, &a.subresource))
                && (self.resource_names.is_empty() || self.resource_names.contains(&a.name))
        } else {
            has_or_all(&self.verbs, &a.verb) && self.non_resource_urls.iter().any(|u| url_matches(u, &a.path))
        }
    }

    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`
    pub fn describe(&self) -> String {
        let lists = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let set = lists.iter().filter(|(_, list)| !list.is_empty());
        let parts: Vec<String> = set.map(|(name, list)| format!("{name}:{}", quote_list(list))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

fn has_or_all(list: &[Str], wanted: &Str) -> bool {
    list.iter().any(|v| v == wanted || v == "*")
}

/// `*` fits everything, `*/status` the subresource of any resource, else the names must be equal.
fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    // Split where the subresource would begin: names may hold slashes themselves.
    let Some(head) = rule.strip_suffix(subresource).and_then(|r| r.strip_suffix('/')) else { return false };
    head == "*" || head == resource
}

/// A trailing `*` fits every path that begins so.
pub(super) fn url_matches(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> PolicyRule {
        let mut parts = text.split(' ').map(|list| list.split(',').map(Str::from).collect::<Vec<_>>());
        PolicyRule {
            verbs: parts.next().unwrap(),
            api_groups: parts.next().unwrap(),
            resources: parts.next().unwrap(),
            resource_names: parts.next().unwrap_or_default(),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn resources() {
        // rule: verbs groups resources [names]; request: verb group resource subresource name
        let cases = [
            ("get apps deployments", "get apps deployments - -", true),
            ("get apps deployments", "get apps deployments - n", true),
            ("get apps deployments", "get apps deployments status -", false),
            ("get apps deployments", "list apps deployments - -", false),
            ("get apps deployments", "get extensions deployments - -", false),
            ("* * *", "anything any thing at all", true),
            ("get apps deployments/status", "get apps deployments status -", true),
            ("get apps */status", "get apps deployments status -", true),
            ("get apps */scale", "get apps deployments status -", false),
            ("get apps */status", "get apps deployments - -", false),
            ("get apps status", "get apps deployments status -", false),
            ("get apps *", "get apps deployments status -", true),
            ("get apps deployments a,b", "get apps deployments - b", true),
            ("get apps deployments a,b", "get apps deployments - c", false),
            ("list apps deployments a", "list apps deployments - -", false),
            ("GET apps deployments", "get apps deployments - -", false),
        ];
        for (r, request, want) in cases {
            let words: Vec<Str> = request.split(' ').map(|w| if w == "-" { "".into() } else { w.into() }).collect();
            let [verb, group, resource, subresource, name] = words.try_into().unwrap();
            let attributes = Attributes {
                verb,
                group,
                resource,
                subresource,
                name,
                resource_request: true,
                ..Attributes::default()
            };
            assert_eq!(rule(r).allows(&attributes), want, "{r} | {request}");
        }
    }

    #[test]
    fn urls() {
        let cases = [
            ("/api", "/api", true),
            ("/api", "/api/", false),
            ("/api/*", "/api/v1", true),
            ("/api/*", "/api", false),
            ("/api*", "/apis", true),
            ("*", "/anything", true),
            ("/api", "//api", false),
            ("/healthz", "/healthz/../metrics", false),
        ];
        for (url, path, want) in cases {
            let rule =
                PolicyRule { verbs: vec!["get".into()], non_resource_urls: vec![url.into()], ..PolicyRule::default() };
            let mut attributes = Attributes { verb: "get".into(), path: path.into(), ..Attributes::default() };
            assert_eq!(rule.allows(&attributes), want, "{url} {path}");
            attributes.resource_request = true;
            assert!(!rule.allows(&attributes), "a URL rule says nothing about resources");
        }
    }

    #[test]
    fn round_trip_and_description() {
        let r = rule("get,list ,apps pods a");
        assert_eq!(PolicyRule::from_value(&r.to_value()), r);
        assert_eq!(
            r.describe(),
            r#"{APIGroups:["" "apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}"#
        );
    }
}
