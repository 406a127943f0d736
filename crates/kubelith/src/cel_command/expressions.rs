//! The expressions of an object, whatever its kind.

use super::costs::number;
use super::files::Document;
use super::{devices, policies};
use kubelith_cel::Checked;
use kubelith_cel::estimate::Cost;
use kubelith_extensions::inspect::{self, RULE_LIMIT, SCHEMA_LIMIT};
use kubelith_meta::{Str, Value};

/// An expression, where it stands, and what became of it.
pub struct Expression {
    pub path: String,
    pub text: Str,
    /// For how many values of one object it may be evaluated.
    pub evaluations: u64,
    /// The most it may cost with all evaluations, if servers look at that when it is written.
    pub limit: Option<u64>,
    pub compiled: Result<Compiled, String>,
}

pub struct Compiled {
    pub checked: Checked,
    /// By node, for one evaluation.
    pub costs: Vec<Cost>,
}

impl Expression {
    pub fn max_cost(&self) -> u64 {
        let root = |c: &Compiled| c.costs.get(c.checked.ast.root().0 as usize).map_or(0, |cost| cost.max);
        self.compiled.as_ref().map_or(0, root).saturating_mul(self.evaluations)
    }

    pub fn is_too_expensive(&self) -> bool {
        self.limit.is_some_and(|limit| self.max_cost() > limit)
    }
}

pub fn expressions_of(document: &Document) -> Result<Vec<Expression>, String> {
    let value = &document.value;
    let is_definition = value.str_at(&["kind"]) == "CustomResourceDefinition";
    if is_definition && value.str_at(&["apiVersion"]) != "apiextensions.k8s.io/v1" {
        return Err(format!("{}: only apiextensions.k8s.io/v1 can be read", document.title()));
    }
    Ok(of_object(value))
}

/// Definitions are read at v1.
pub fn of_object(value: &Value) -> Vec<Expression> {
    match value.str_at(&["kind"]) {
        "CustomResourceDefinition" => inspect::expressions(value).into_iter().map(of_definition).collect(),
        "DeviceClass" | "ResourceClaim" | "ResourceClaimTemplate" => devices::expressions(value),
        _ => policies::expressions(value),
    }
}

fn of_definition(found: inspect::Expression) -> Expression {
    Expression {
        path: found.path,
        text: found.text,
        evaluations: found.evaluations,
        limit: Some(RULE_LIMIT),
        compiled: found.compiled.map(|c| Compiled { checked: c.checked, costs: c.costs }),
    }
}

/// What is said if the rules of one version of a definition cost too much together.
pub fn total_exceeded(of: &Value, found: &[Expression]) -> Option<String> {
    if of.str_at(&["kind"]) != "CustomResourceDefinition" {
        return None;
    }
    let version = |path: &str| path.split(']').next().map(str::to_owned);
    for expression in found {
        let own = version(&expression.path);
        let same = found.iter().filter(|e| version(&e.path) == own);
        let sum = same.map(Expression::max_cost).fold(0u64, u64::saturating_add);
        if sum > SCHEMA_LIMIT {
            let (own, sum) = (own.unwrap_or_default(), number(sum));
            return Some(format!("{own}]: estimated cost of all rules together {sum} of {SCHEMA_LIMIT}"));
        }
    }
    None
}
