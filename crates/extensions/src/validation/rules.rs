//! Rules in CEL of a definition: whether they can be compiled, and what they may cost.
//!
//! A rule costs its own estimate times the number of values that it may be evaluated for. That number comes from the
//! limits of the lists and maps around it or, where one has none, from how often such a value fits into a request.

use super::internal;
use super::leniency::Leniency;
use super::walk::list;
use crate::rules::field_path::{self, Brackets};
use crate::rules::{Compiled, Known, compile, declare};
use kubelith_cel::Declared;
use kubelith_cel::declared::Root;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_schema::structural::Structural;

pub const KEY: &str = "x-kubernetes-validations";
/// The most that one rule may cost, for all values that it is evaluated for.
pub const RULE_LIMIT: u64 = 10_000_000;
/// The most that all rules of a schema may cost.
pub const SCHEMA_LIMIT: u64 = 100_000_000;
/// The most expensive rules, of which this many are named, if each has a hundredth of the limit.
const NAMED: usize = 4;

/// A schema as rules see it, on the way down from the root.
#[derive(Clone)]
pub struct Context<'a> {
    schema: &'a Structural,
    /// What values are, where a rule stands here or above.
    declared: Option<Declared>,
    /// How many values there can be; `None` where nothing bounds them.
    cardinality: Option<u64>,
}

impl<'a> Context<'a> {
    pub fn root(schema: &'a Structural) -> Context<'a> {
        let declared = has_rules(schema).then(|| declare(schema, Root::Resource)).flatten();
        Context { schema, declared, cardinality: Some(1) }
    }

    pub fn property(&self, parent: &Value, name: &str) -> Option<Context<'a>> {
        let declared = self.declared.as_ref().and_then(|d| d.property(name));
        Some(self.below(parent, self.schema.property(name)?, declared))
    }

    pub fn additional(&self, parent: &Value) -> Option<Context<'a>> {
        let declared = self.declared.as_ref().and_then(Declared::element);
        Some(self.below(parent, self.schema.additional_schema()?, declared))
    }

    pub fn items(&self, parent: &Value) -> Option<Context<'a>> {
        let declared = self.declared.as_ref().and_then(Declared::element);
        Some(self.below(parent, self.schema.items.as_deref()?, declared))
    }

    fn below(&self, parent: &Value, schema: &'a Structural, declared: Option<&Declared>) -> Context<'a> {
        let declared = match declared {
            Some(declared) => Some(declared.clone()),
            None if self.declared.is_some() || has_rules(schema) => declare(schema, Root::of(schema)),
            None => None,
        };
        let factor = max_elements(parent);
        let cardinality = self.cardinality.zip(factor).map(|(n, factor)| n.saturating_mul(factor));
        Context { schema, declared, cardinality }
    }

    /// What a rule costs with all its evaluations.
    fn cost(&self, rule: &Compiled, declared: &Declared) -> u64 {
        rule.max_cost.saturating_mul(self.evaluations(declared))
    }

    /// For how many values of one object a rule may be evaluated.
    pub fn evaluations(&self, declared: &Declared) -> u64 {
        self.cardinality.unwrap_or_else(|| declared.cardinality())
    }

    pub fn declared(&self) -> Option<&Declared> {
        self.declared.as_ref()
    }
}

fn has_rules(schema: &Structural) -> bool {
    schema.rules.as_deref().is_some_and(|rules| !rules.cel.is_empty())
}

/// How many values can stand in one value of this schema, at one place below it.
fn max_elements(schema: &Value) -> Option<u64> {
    let limit = |key: &str| schema.get(key).and_then(Value::as_i64).map(|n| n.max(0).unsigned_abs());
    match schema.str_at(&["type"]) {
        "object" if super::walk::has(schema, "additionalProperties") => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}

/// What the rules of one schema cost together.
#[derive(Default)]
pub struct Total {
    sum: u64,
    /// The most expensive ones, most expensive first.
    largest: Vec<(u64, String)>,
}

impl Total {
    fn add(&mut self, cost: u64, path: &Path<'_>) {
        self.sum = self.sum.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            let at = self.largest.partition_point(|(other, _)| *other >= cost);
            self.largest.insert(at, (cost, path.to_string()));
            self.largest.truncate(NAMED);
        }
    }

    /// What is said if it is too much.
    pub fn errors(&self, path: &Path<'_>) -> ErrorList {
        let mut errors = ErrorList::default();
        if self.sum > SCHEMA_LIMIT {
            for (_, path) in &self.largest {
                let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                errors.push(Error::forbidden(&Path::new(path), why));
            }
            let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            errors.push(Error::forbidden(path, too_expensive(what, self.sum, SCHEMA_LIMIT)));
        }
        errors
    }
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// What is wrong with rules that needs no understanding of them.
pub fn form(s: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let breaks = |text: &str| text.contains(['\n', '\r']);
    for (i, rule) in list(s, KEY).iter().enumerate() {
        let at = path.item(KEY, i);
        let (text, message) = (rule.str_at(&["rule"]), rule.str_at(&["message"]));
        let (expression, field) = (rule.str_at(&["messageExpression"]), rule.str_at(&["fieldPath"]));
        if text.trim().is_empty() {
            errors.push(Error::required(&at.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(Error::invalid(&at.child("message"), message, "must be non-empty if specified"));
        } else if breaks(message.trim()) {
            errors.push(Error::invalid(&at.child("message"), message, "must not contain line breaks"));
        } else if breaks(text.trim()) && message.trim().is_empty() {
            let why = "message must be specified if rule contains line breaks";
            errors.push(Error::required(&at.child("message"), why));
        }
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            errors.push(Error::required(&at.child("messageExpression"), why));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|r| !REASONS.contains(r)) {
            errors.push(Error::not_supported(&at.child("reason"), reason, REASONS));
        }
        if !field.is_empty() && field.trim().is_empty() {
            errors.push(Error::invalid(&at.child("fieldPath"), field, "must be non-empty if specified"));
        }
        if breaks(field) {
            errors.push(Error::invalid(&at.child("fieldPath"), field, "must not contain line breaks"));
        }
        if !field.is_empty()
            && super::walk::unsupported(s).is_none()
            && field_path::resolve(field, &Structural::parse(s), Brackets::Allowed).is_err()
        {
            errors.push(Error::invalid(&at.child("fieldPath"), field, "must be a valid path"));
        }
    }
}

/// Compiles the rules that stand at one schema. `uncorrelatable` is the list or map around it whose elements have no old
/// value.
pub fn validate(
    s: &Value,
    context: &Context<'_>,
    uncorrelatable: Option<&str>,
    leniency: &Leniency,
    path: &Path<'_>,
    total: &mut Total,
) -> ErrorList {
    let mut errors = ErrorList::default();
    let rules = list(s, KEY);
    let Some(declared) = &context.declared else {
        let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                   convert structural schema to CEL declarations";
        errors.push(Error::internal(&path.child(KEY), why));
        return errors;
    };
    let Leniency { rules: known_rules, messages, expressions, .. } = leniency;
    let known = Known::These { rules: known_rules, messages, expressions };
    for (i, compiled) in compile(rules, context.schema, declared, known).iter().enumerate() {
        let at = path.item(KEY, i);
        let (rule_at, message_at) = (at.child("rule"), at.child("messageExpression"));
        let cost = context.cost(compiled, declared);
        if cost > RULE_LIMIT && !leniency.expensive_rules {
            errors.push(Error::forbidden(&rule_at, too_expensive("estimated rule cost", cost, RULE_LIMIT)));
        }
        total.add(cost, &rule_at);
        if let Some(why) = &compiled.error {
            errors.push(Error::invalid(&rule_at, internal::rule(&rules[i]), why));
        }
        if let Some(why) = &compiled.message_error {
            errors.push(Error::invalid(&message_at, internal::rule(&rules[i]), why));
        } else if let Some(message) = &compiled.message {
            if message.max_cost > RULE_LIMIT && !leniency.expensive_rules {
                let why = too_expensive("estimated messageExpression cost", message.max_cost, RULE_LIMIT);
                errors.push(Error::forbidden(&message_at, why));
            }
            total.add(message.max_cost, &message_at);
        }
        if compiled.uses_old_self {
            if let Some(within) = uncorrelatable {
                let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
                errors.push(Error::invalid(&rule_at, compiled.rule.text.as_str(), why));
            }
        } else if let Some(given) = compiled.rule.optional_old_self {
            let why = "may not be set if oldSelf is not used in rule";
            errors.push(Error::invalid(&at.child("optionalOldSelf"), given, why));
        }
    }
    errors
}
