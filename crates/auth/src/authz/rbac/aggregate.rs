//! Aggregated cluster roles: rules collected from the roles that their selectors choose.

use kubelith_meta::selector::SelectorError;
use kubelith_meta::{LabelSelector, Map, Value};

/// The rules `role` should have, given all cluster roles; `None` if it is not aggregated or has them already.
pub fn aggregated_rules<'a>(
    role: &Value,
    all: impl IntoIterator<Item = &'a Value>,
) -> Result<Option<Vec<Value>>, SelectorError> {
    let Some(rule) = role.get("aggregationRule").filter(|r| !r.is_null()) else { return Ok(None) };
    let own_name = role.str_at(&["metadata", "name"]);
    let mut others: Vec<&Value> = all.into_iter().filter(|r| r.str_at(&["metadata", "name"]) != own_name).collect();
    others.sort_by_key(|r| r.str_at(&["metadata", "name"]));

    let mut rules: Vec<Value> = Vec::new();
    let none = Map::new();
    for selector in rule.get("clusterRoleSelectors").and_then(Value::as_array).unwrap_or_default() {
        let selector = LabelSelector::from_object(Some(selector))?;
        for other in &others {
            let labels = other.at(&["metadata", "labels"]).and_then(Value::as_object).unwrap_or(&none);
            if !selector.matches(labels) {
                continue;
            }
            for rule in other.get("rules").and_then(Value::as_array).unwrap_or_default() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    let current = role.get("rules").and_then(Value::as_array).unwrap_or_default();
    Ok((rules != current).then_some(rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::rbac::PolicyRule;

    fn role(name: &str, label: &str, verbs: &[&str]) -> Value {
        let rule = |verb: &&str| {
            let one = |s: &str| vec![s.into()];
            PolicyRule { verbs: one(verb), api_groups: one(""), resources: one("pods"), ..Default::default() }
                .to_value()
        };
        let metadata = Value::from([("name", Value::from(name)), ("labels", Value::from([(label, "true")]))]);
        Value::from([("metadata", metadata), ("rules", Value::Array(verbs.iter().map(rule).collect()))])
    }

    #[test]
    fn collects_in_order_of_selectors_and_names() {
        let mut target = role("sum", "to-sum", &["self"]);
        let selectors: Vec<Value> =
            ["to-sum", "extra"].map(|l| Value::from([("matchLabels", Value::from([(l, "true")]))])).into();
        target.set_at(&["aggregationRule", "clusterRoleSelectors"], Value::Array(selectors));
        let all = [
            role("b", "to-sum", &["list", "get"]),
            role("x", "extra", &["watch", "get"]),
            role("a", "to-sum", &["get"]),
            role("other", "nothing", &["delete"]),
            target.clone(),
        ];
        let rules = aggregated_rules(&target, &all).unwrap().unwrap();
        let verbs: Vec<String> = rules.iter().map(|r| PolicyRule::from_value(r).verbs.join(",")).collect();
        assert_eq!(verbs, ["get", "list", "watch"]);

        target.set_at(&["rules"], Value::Array(rules));
        assert_eq!(aggregated_rules(&target, &all).unwrap(), None, "nothing to do the second time");
        assert_eq!(aggregated_rules(&all[0], &all).unwrap(), None);
    }
}
