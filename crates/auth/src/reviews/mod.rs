//! The API kinds that answer questions about access instead of being stored.
//!
//! Each has a check of the request, which comes before admission, and an evaluation, which comes after.

pub mod access;
pub mod rules;
pub mod token;
pub mod token_request;

use crate::user::User;
use kubelith_meta::{Map, Str, Value};
use std::collections::BTreeMap;

/// A user as reviews show it; what is empty is left out.
pub fn user_info(user: &User) -> Value {
    let mut info = Map::new();
    if !user.extra.is_empty() {
        let extra: Map = user.extra.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        info.insert("extra", extra);
    }
    if !user.groups.is_empty() {
        info.insert("groups", user.groups.clone());
    }
    for (key, value) in [("uid", &user.uid), ("username", &user.name)] {
        if !value.is_empty() {
            info.insert(key, value.clone());
        }
    }
    Value::Object(info)
}

/// SelfSubjectReview: who the client is. Whatever was sent, the answer holds nothing else.
pub fn self_subject_review(review: &Value, user: &User, now: &str) -> Value {
    let mut answer = kind_of(review);
    answer.set_at(&["metadata", "creationTimestamp"], now.into());
    answer.set_at(&["status", "userInfo"], user_info(user));
    answer
}

fn kind_of(review: &Value) -> Value {
    let keys = ["apiVersion", "kind"].into_iter();
    Value::Object(keys.filter_map(|k| review.get(k).map(|v| (k, v.clone()))).collect())
}

pub(crate) fn strings(value: Option<&Value>) -> Vec<Str> {
    let list = value.and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(Str::from).collect()
}

pub(crate) fn extra(value: Option<&Value>) -> BTreeMap<Str, Vec<Str>> {
    let entries = value.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries.map(|(key, values)| (Str::from(key), strings(Some(values)))).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
