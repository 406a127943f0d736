//! What webhooks, policies and bindings share.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_qualified_name, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_object_meta};
use kubelith_rules::common::{Fields, METADATA, invalid_all};
use kubelith_rules::expression::{self, Environment, Expression, Expressions, Purpose};
use std::collections::BTreeSet;

const MAX_CONDITIONS: usize = 64;

pub const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

pub const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

pub const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

/// Metadata, alike on create and update.
pub fn check_metadata(object: &Value) -> ErrorList {
    validate_object_meta(object.meta(), Namespacing::Forbidden, name_is_dns_subdomain, &METADATA)
}

/// The expressions that `owners` have as their member `key`.
pub fn expressions<'a>(owners: &'a [Value], key: &str) -> BTreeSet<&'a str> {
    owners.iter().map(|owner| owner.text(key)).collect()
}

/// Whether `params` is known to match conditions, and which of them are stored already.
pub struct Conditions<'a> {
    pub expressions: &'a Expressions,
    pub has_params: bool,
    pub stored: BTreeSet<&'a str>,
}

impl Conditions<'_> {
    pub fn check(&self, conditions: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
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
            expressions: self.expressions,
            purpose: Purpose::MatchCondition,
            has_params: self.has_params,
            variables: &[],
            is_stored: self.stored.contains(expression.source),
        };
        expression::check(expression, environment, path, errors);
    }
}
