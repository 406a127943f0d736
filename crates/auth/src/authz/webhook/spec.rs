//! What a webhook is told about a request.

use super::AccessReviewVersion;
use crate::traits::{Attributes, Operator, Requirement};
use kubelith_meta::{Map, Str, Value};

/// The spec of a SubjectAccessReview about `attributes`.
pub fn review_spec(a: &Attributes, version: AccessReviewVersion) -> Value {
    let mut spec = Map::new();
    let user = &a.user;
    if !user.extra.is_empty() {
        spec.insert("extra", user.extra.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Map>());
    }
    if !user.groups.is_empty() {
        let key = if version == AccessReviewVersion::V1 { "groups" } else { "group" };
        spec.insert(key, user.groups.clone());
    }
    for (key, value) in [("uid", &user.uid), ("user", &user.name)] {
        if !value.is_empty() {
            spec.insert(key, value.clone());
        }
    }
    let set = |entries: &[(&str, &Str)]| -> Map {
        entries.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (*k, (*v).clone())).collect()
    };
    if a.resource_request {
        let mut resource = set(&[
            ("group", &a.group),
            ("name", &a.name),
            ("namespace", &a.namespace),
            ("resource", &a.resource),
            ("subresource", &a.subresource),
            ("verb", &a.verb),
            ("version", &a.version),
        ]);
        for (key, selector) in [("fieldSelector", &a.field_selector), ("labelSelector", &a.label_selector)] {
            let requirements: Vec<Value> = selector.requirements.iter().filter_map(requirement).collect();
            if !requirements.is_empty() {
                resource.insert(key, Value::from([("requirements", Value::Array(requirements))]));
            }
        }
        spec.insert("resourceAttributes", resource);
    } else {
        spec.insert("nonResourceAttributes", set(&[("path", &a.path), ("verb", &a.verb)]));
    }
    Value::Object(spec)
}

/// Comparisons of numbers cannot be said in a review: without them it asks about more, which is safe.
pub(super) fn requirement(r: &Requirement) -> Option<Value> {
    let operator = match r.operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::GreaterThan | Operator::LessThan => return None,
    };
    let mut map = Map::from_iter([("key", Value::from(r.key.clone())), ("operator", operator.into())]);
    if !r.values.is_empty() {
        map.insert("values", r.values.clone());
    }
    Some(Value::Object(map))
}
