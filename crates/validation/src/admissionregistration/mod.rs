//! Admission webhooks and admission policies.

mod binding;
mod policy;
mod rule;
mod status;
#[cfg(test)]
mod tests;
mod webhook;

use crate::Rules;
use crate::common::METADATA;
use crate::common::{Fields, invalid_all};
use crate::expression::{self, Environment, Expression, Purpose};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_qualified_name, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_object_meta};
use std::collections::BTreeSet;

const MAX_CONDITIONS: usize = 64;
const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

pub fn rules(plural: &str) -> Option<Rules> {
    match plural {
        "validatingwebhookconfigurations" | "mutatingwebhookconfigurations" => Some(webhook::RULES),
        "validatingadmissionpolicies" => Some(policy::VALIDATING),
        "mutatingadmissionpolicies" => Some(policy::MUTATING),
        "validatingadmissionpolicybindings" => Some(binding::VALIDATING),
        "mutatingadmissionpolicybindings" => Some(binding::MUTATING),
        _ => None,
    }
}

/// Metadata, alike on create and update.
fn check_metadata(object: &Value) -> ErrorList {
    validate_object_meta(object.meta(), Namespacing::Forbidden, name_is_dns_subdomain, &METADATA)
}

/// The expressions that `owners` have as their member `key`.
fn expressions<'a>(owners: &'a [Value], key: &str) -> BTreeSet<&'a str> {
    owners.iter().map(|owner| owner.text(key)).collect()
}

/// Whether `params` is known to match conditions, and which of them are stored already.
struct Conditions<'a> {
    has_params: bool,
    stored: BTreeSet<&'a str>,
}

impl Conditions<'_> {
    fn check(&self, conditions: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
        if conditions.len() > MAX_CONDITIONS {
            errors.push(Error::too_many(path, conditions.len(), MAX_CONDITIONS));
        }
        let mut names = BTreeSet::new();
        for (i, condition) in conditions.iter().enumerate() {
            let path = path.index(i);
            self.check_expression(condition, &path.child("expression"), errors);
            let name = condition.text("name");
            if name.is_empty() {
                errors.push(Error::required(&path.child("name"), ""));
                continue;
            }
            invalid_all(is_qualified_name(name), &path.child("name"), name, errors);
            if !names.insert(name) {
                errors.push(Error::duplicate(&path.child("name"), name));
            }
        }
    }

    fn check_expression(&self, condition: &Value, path: &Path<'_>, errors: &mut ErrorList) {
        let expression = Expression::trimmed(condition.text("expression"));
        if expression.source.is_empty() {
            return errors.push(Error::required(path, ""));
        }
        let environment = Environment {
            purpose: Purpose::MatchCondition,
            has_params: self.has_params,
            variables: &[],
            is_stored: self.stored.contains(expression.source),
        };
        expression::check(expression, environment, path, errors);
    }
}
