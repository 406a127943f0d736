//! SelfSubjectRulesReview: all that the client may do in a namespace.

use super::kind_of;
use crate::traits::{Authorizer, NonResourceRule, ResourceRule};
use crate::user::User;
use kubelith_meta::{Map, Status, Str, Value};

pub fn validate(review: &Value) -> Result<(), Status> {
    match review.str_at(&["spec", "namespace"]) {
        "" => Err(Status::bad_request("no namespace on request")),
        _ => Ok(()),
    }
}

/// The answer, which does not repeat what was asked.
pub fn evaluate(review: &Value, user: &User, authorizer: &dyn Authorizer) -> Value {
    let rules = authorizer.rules_for(user, review.str_at(&["spec", "namespace"]));
    let mut status = Map::new();
    if let Some(error) = rules.error {
        status.insert("evaluationError", error.to_string());
    }
    status.insert("incomplete", rules.incomplete);
    status.insert("nonResourceRules", Value::Array(rules.non_resource_rules.iter().map(non_resource_rule).collect()));
    status.insert("resourceRules", Value::Array(rules.resource_rules.iter().map(resource_rule).collect()));
    let mut answer = kind_of(review);
    answer.set_at(&["metadata"], Value::object());
    answer.set_at(&["spec"], Value::object());
    answer.set_at(&["status"], Value::Object(status));
    answer
}

fn resource_rule(rule: &ResourceRule) -> Value {
    lists(
        &rule.verbs,
        &[("apiGroups", &rule.api_groups), ("resourceNames", &rule.resource_names), ("resources", &rule.resources)],
    )
}

fn non_resource_rule(rule: &NonResourceRule) -> Value {
    lists(&rule.verbs, &[("nonResourceURLs", &rule.non_resource_urls)])
}

fn lists(verbs: &[Str], others: &[(&str, &Vec<Str>)]) -> Value {
    let others = others.iter().filter(|(_, list)| !list.is_empty());
    let mut rule: Map = others.map(|(key, list)| (*key, (*list).clone())).collect();
    rule.insert("verbs", verbs.to_vec());
    Value::Object(rule)
}
