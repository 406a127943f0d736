//! Defaults must be what their schema asks for.

use crate::rules::{Budget, RuleTree};
use crate::serving::embedded;
use crate::serving::schemas::Embedded;
use kubelith_cel::declared::Root;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_schema::structural::{self, Structural};
use std::sync::Arc;

/// Whether defaults may have fields that the schema does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Refused,
    AsBefore,
}

pub fn validate(schema: &Value, unknown: Unknown, path: &Path<'_>) -> ErrorList {
    let mut walk = Walk { unknown, budget: Some(Budget::OBJECT), errors: ErrorList::default() };
    walk.schema(&Structural::parse(schema), Root::Resource, path);
    walk.errors
}

pub fn has_unpruned(schema: &Value) -> bool {
    let parsed = Structural::parse(schema);
    parsed.any(&|s| s.default.as_deref().is_some_and(|default| pruned(s, default) != *default))
}

fn pruned(schema: &Structural, default: &Value) -> Value {
    let mut copy = schema.clone();
    copy.default = Some(Box::new(default.clone()));
    copy.prune_defaults();
    copy.default.map(|d| *d).unwrap_or_default()
}

struct Walk {
    unknown: Unknown,
    /// What rules may still cost. When it is used up, nothing more is looked at.
    budget: Option<Budget>,
    errors: ErrorList,
}

impl Walk {
    fn schema(&mut self, schema: &Structural, root: Root, path: &Path<'_>) {
        if let Some(default) = schema.default.as_deref() {
            self.default(schema, default, root, &path.child("default"));
        }
        if let Some(items) = &schema.items {
            self.below(items, &path.child("items"));
        }
        for (name, property) in &schema.properties {
            self.below(property, &path.entry("properties", name));
        }
    }

    fn below(&mut self, schema: &Structural, path: &Path<'_>) {
        if self.budget.is_some() {
            self.schema(schema, Root::of(schema), path);
        }
    }

    fn default(&mut self, schema: &Structural, default: &Value, root: Root, at: &Path<'_>) {
        if self.unknown == Unknown::Refused && pruned(schema, default) != *default {
            self.errors.push(Error::invalid(at, default, "must not have unknown fields"));
        }
        let mut found = match Embedded::check(schema, default, at) {
            Ok(()) => embedded::validate_at(schema, default, at),
            Err(unreadable) => ErrorList::from_iter([unreadable]),
        };
        if found.is_empty() {
            found = structural::validate(schema, default, Some(at));
        }
        if found.is_empty() {
            found = self.rules(schema, default, root, at);
        }
        self.errors.extend(found);
    }

    /// A default must pass the rules both as it stays and as it comes to be.
    fn rules(&mut self, schema: &Structural, default: &Value, root: Root, at: &Path<'_>) -> ErrorList {
        let (Some(rules), Some(budget)) = (RuleTree::new(&Arc::new(schema.clone()), root), self.budget) else {
            return ErrorList::default();
        };
        let (mut found, mut left) = rules.check_default(default, Some(default), at, budget);
        if found.is_empty() {
            let (new, left_of_new) = rules.check_default(default, None, at, budget);
            found = new;
            left = left.zip(left_of_new).map(|(a, b)| a.min(b));
        }
        self.budget = left;
        found
    }
}
