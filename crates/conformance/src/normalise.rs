//! Replaces what differs from one run to the next (times, uids, versions, the run's namespace) by a name for it.

use crate::variables::Variables;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// Applied in this order to every string of an answer.
static RULES: LazyLock<[(Regex, &str); 6]> = LazyLock::new(|| {
    [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r#"resourceVersion: "?\d+"?"#, "resourceVersion: <rv>"),
        (r"(?i)(too large resource version): \d+, current: \d+", "${1}: <rv>, current: <rv>"),
        (r"(ResourceVersion in (?:the )?(?:precondition|record|object meta))( \(|: )\d+", "${1}${2}<rv>"),
        (r#"(resourceVersion\\*":\s*\\*")\d+"#, "${1}<rv>"),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).expect("the pattern is a constant"), with))
});

/// How many rules run before the namespace is named: its text must not be taken for part of a uid.
const BEFORE_NAMESPACE: usize = 2;

pub fn normalise(value: &mut Value, variables: &Variables) {
    under_key(value, variables, "");
}

pub fn text(text: &str, variables: &Variables) -> String {
    let mut out = text.to_owned();
    for (index, (pattern, with)) in RULES.iter().enumerate() {
        if index == BEFORE_NAMESPACE {
            out = name_namespace(&out, variables);
        }
        if let std::borrow::Cow::Owned(replaced) = pattern.replace_all(&out, *with) {
            out = replaced;
        }
    }
    out
}

fn under_key(value: &mut Value, variables: &Variables, key: &str) {
    match value {
        Value::Object(map) => {
            if key == "columnDefinitions" {
                // What a column means is prose, not behaviour.
                map.remove("description");
            }
            for (name, mut inner) in std::mem::take(map) {
                under_key(&mut inner, variables, &name);
                map.insert(name_namespace(&name, variables), inner);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| under_key(item, variables, key)),
        Value::String(string) => {
            let is_number = !string.is_empty() && string.bytes().all(|b| b.is_ascii_digit());
            *string = match key {
                "resourceVersion" if is_number && string != "0" => "<rv>".to_owned(),
                "continue" if !string.is_empty() => "<continue>".to_owned(),
                _ => text(string, variables),
            };
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn name_namespace(text: &str, variables: &Variables) -> String {
    match variables.namespace() {
        Some(namespace) if !namespace.is_empty() => text.replace(namespace, "${ns}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_what_changes() {
        let variables = Variables::new("tr-x-1a");
        let mut value = json!({
            "metadata": {
                "resourceVersion": "12", "continue": "abc", "namespace": "tr-x-1a", "creationTimestamp": "2026-01-02T03:04:05Z",
                "uid": "0a1b2c3d-0000-1111-2222-333344445555", "labels": {"kubernetes.io/tr-x-1a": "y"}, "generation": 3
            },
            "list": {"resourceVersion": "0", "continue": ""},
            "message": "at 2026-01-02T03:04:05.123456Z, Too large resource version: 99, current: 7, {\"resourceVersion\":\"4\"}",
            "precondition": "ResourceVersion in precondition: 5, ResourceVersion in object meta: 6",
            "columnDefinitions": [{"name": "Age", "description": "prose"}]
        });
        normalise(&mut value, &variables);
        assert_eq!(
            value,
            json!({
                "metadata": {
                    "resourceVersion": "<rv>", "continue": "<continue>", "namespace": "${ns}", "creationTimestamp": "<time>",
                    "uid": "<uid>", "labels": {"kubernetes.io/${ns}": "y"}, "generation": 3
                },
                "list": {"resourceVersion": "0", "continue": ""},
                "message": "at <time>, Too large resource version: <rv>, current: <rv>, {\"resourceVersion\":\"<rv>\"}",
                "precondition": "ResourceVersion in precondition: <rv>, ResourceVersion in object meta: <rv>",
                "columnDefinitions": [{"name": "Age"}]
            })
        );
    }
}
