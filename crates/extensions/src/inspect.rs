//! What there is to know of the rules of a definition without a server: where they stand, what is wrong with them, what
//! they may cost, and what they say of an object.

use crate::rules::{Rule, RuleTree, environment};
use crate::validation::rules::{Context, KEY};
use crate::validation::walk::{list, members};
use kubelith_cel::declared::Root;
use kubelith_cel::estimate::{self, Cost};
use kubelith_cel::{Checked, Declared, Env, Program, Type};
use kubelith_meta::field::{ErrorList, Path};
use kubelith_meta::{Str, Value};
use kubelith_schema::structural::Structural;
use std::sync::Arc;

pub use crate::validation::rules::{RULE_LIMIT, SCHEMA_LIMIT};

/// An expression of a definition.
pub struct Expression {
    pub version: Str,
    /// Where it stands in the definition.
    pub path: String,
    pub text: Str,
    /// For how many values of one object it may be evaluated.
    pub evaluations: u64,
    pub compiled: Result<Compiled, String>,
}

/// An expression that can be evaluated.
pub struct Compiled {
    pub checked: Checked,
    /// By node, for one evaluation.
    pub costs: Vec<Cost>,
}

impl Expression {
    /// The most it may cost for one object.
    pub fn max_cost(&self) -> u64 {
        let once =
            self.compiled.as_ref().map_or(0, |c| c.costs.get(c.checked.ast.root().0 as usize).map_or(0, |c| c.max));
        once.saturating_mul(self.evaluations)
    }
}

/// The expressions of a definition, version by version.
pub fn expressions(definition: &Value) -> Vec<Expression> {
    let mut found = Vec::new();
    let versions = Path::of(&["spec", "versions"]);
    for (i, version) in versions_of(definition).iter().enumerate() {
        let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else { continue };
        let structural = Structural::parse(schema);
        let at = versions.index(i);
        let path = at.children(&["schema", "openAPIV3Schema"]);
        let name = Str::from(version.str_at(&["name"]));
        walk(schema, &Context::root(&structural), &name, &path, &mut found);
    }
    found
}

fn versions_of(definition: &Value) -> &[Value] {
    definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[])
}

fn walk(schema: &Value, context: &Context<'_>, version: &Str, path: &Path<'_>, found: &mut Vec<Expression>) {
    for (i, rule) in list(schema, KEY).iter().enumerate() {
        let at = path.item(KEY, i);
        let rule = Rule::read(rule);
        let mut add = |key: &str, text: &Str, wanted: Type, evaluations: u64| {
            let compiled = match context.declared() {
                Some(declared) => compile(&environment(&rule, declared), text, &wanted, declared),
                None => Err("rules cannot see values of this schema".to_owned()),
            };
            let (version, path) = (version.clone(), at.child(key).to_string());
            found.push(Expression { version, path, text: text.clone(), evaluations, compiled });
        };
        add("rule", &rule.text, Type::Bool, context.declared().map_or(1, |d| context.evaluations(d)));
        if !rule.message_expression.is_empty() {
            add("messageExpression", &rule.message_expression, Type::String, 1);
        }
    }
    for (name, property) in members(schema, "properties") {
        if let Some(below) = context.property(schema, name) {
            walk(property, &below, version, &path.entry("properties", name), found);
        }
    }
    if let (Some(items), Some(below)) = (schema.get("items"), context.items(schema)) {
        walk(items, &below, version, &path.child("items"), found);
    }
    if let (Some(values), Some(below)) = (schema.get("additionalProperties"), context.additional(schema)) {
        walk(values, &below, version, &path.child("additionalProperties"), found);
    }
}

fn compile(env: &Env, text: &str, wanted: &Type, declared: &Declared) -> Result<Compiled, String> {
    let checked = env.compile(text).map_err(|issues| issues.to_string())?;
    let got = checked.result_type();
    if got != wanted {
        return Err(format!("must evaluate to {wanted}, not {got}"));
    }
    Program::new(env, &checked)?;
    let costs = estimate::costs(&checked, Some(declared));
    Ok(Compiled { checked, costs })
}

/// Whether an object is one of the definition's.
pub fn is_instance(definition: &Value, object: &Value) -> bool {
    let (group, version) = object.str_at(&["apiVersion"]).split_once('/').unwrap_or(("", ""));
    group == definition.str_at(&["spec", "group"])
        && object.str_at(&["kind"]) == definition.str_at(&["spec", "names", "kind"])
        && versions_of(definition).iter().any(|v| v.str_at(&["name"]) == version)
}

/// What the rules of a definition say of one of its objects: errors, and warnings of what was wrong before.
pub fn check(definition: &Value, object: &Value, old: Option<&Value>) -> (ErrorList, Vec<String>) {
    let (_, version) = object.str_at(&["apiVersion"]).split_once('/').unwrap_or(("", ""));
    let version = versions_of(definition).iter().find(|v| v.str_at(&["name"]) == version);
    let Some(schema) = version.and_then(|v| v.at(&["schema", "openAPIV3Schema"])) else { return Default::default() };
    let Some(tree) = RuleTree::new(&Arc::new(Structural::parse(schema)), Root::Resource) else {
        return Default::default();
    };
    let outcome = tree.check(object, old);
    (outcome.errors, outcome.warnings)
}
