//! Programs from the rules of one schema.

use super::field_path::{self, Brackets};
use super::rule::Rule;
use kubelith_cel::ast::Reference;
use kubelith_cel::declared::Root;
use kubelith_cel::{Checked, Declared, Env, Program, Type, estimate};
use kubelith_meta::{Str, Value, random};
use kubelith_rules::expression::{Dialect, Expressions, all_functions};
use kubelith_schema::structural::Structural;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// What the old value is called in rules.
const OLD_SELF: &str = "oldSelf";

/// Which expressions a definition had before: those may use what only newer servers let others use.
#[derive(Debug, Clone, Copy)]
pub enum Known<'a> {
    All,
    /// The others are compiled with what the server has for new ones.
    These {
        rules: &'a BTreeSet<Str>,
        messages: &'a BTreeSet<Str>,
        expressions: &'a Expressions,
    },
}

impl Known<'_> {
    fn has_rule(self, text: &str) -> bool {
        match self {
            Known::All => true,
            Known::These { rules, .. } => rules.contains(text),
        }
    }

    fn has_message(self, text: &str) -> bool {
        match self {
            Known::All => true,
            Known::These { messages, .. } => messages.contains(text),
        }
    }
}

/// A rule, with what became of it. One that is empty has neither program nor error.
pub struct Compiled {
    pub rule: Rule,
    pub program: Option<Program>,
    pub error: Option<String>,
    /// Whether the rule compares with the old value: it is then about changes.
    pub uses_old_self: bool,
    /// The most that it can cost.
    pub max_cost: u64,
    pub message: Option<Message>,
    pub message_error: Option<String>,
    /// Where the error is said to be, below the value.
    pub field: Option<String>,
}

/// `messageExpression`.
pub struct Message {
    pub program: Program,
    pub max_cost: u64,
}

/// What values of a schema are to rules; `None` if those cannot see them. The name of their type means nothing, and is
/// another one each time, so that no rule comes to depend on it.
pub fn declare(schema: &Structural, root: Root) -> Option<Declared> {
    Declared::of_schema(schema, root, &format!("selfType{}", random::random_bits() % 1_000_000_000))
}

/// The rules that stand at `schema`, whose values are declared as `declared`.
pub fn compile(rules: &[Value], schema: &Structural, declared: &Declared, known: Known<'_>) -> Vec<Compiled> {
    if rules.is_empty() {
        return Vec::new();
    }
    let envs = Envs { known, declared, new: OnceCell::new(), stored: OnceCell::new() };
    rules.iter().map(|rule| envs.rule(Rule::read(rule), schema, declared)).collect()
}

/// The environment of an expression, for whoever looks into it.
pub fn environment(rule: &Rule, declared: &Declared) -> Env {
    let pair = Pair::new(Expressions::of(Dialect::default()).functions(), declared);
    if rule.optional_old_self == Some(true) { pair.optional } else { pair.plain }
}

struct Envs<'a> {
    known: Known<'a>,
    declared: &'a Declared,
    new: OnceCell<Pair>,
    stored: OnceCell<Pair>,
}

struct Pair {
    plain: Env,
    /// Where `oldSelf` is optional.
    optional: Env,
}

impl Pair {
    fn new(base: &Env, declared: &Declared) -> Pair {
        let base = base.clone().types(vec![declared.clone()]).declare("self", declared.clone());
        Pair {
            plain: base.clone().declare(OLD_SELF, declared.clone()),
            optional: base.declare_optional(OLD_SELF, declared.clone()),
        }
    }
}

impl Envs<'_> {
    fn of(&self, rule: &Rule, is_stored: bool) -> &Env {
        let pair = match self.known {
            Known::These { expressions, .. } if !is_stored => {
                self.new.get_or_init(|| Pair::new(expressions.functions(), self.declared))
            }
            _ => self.stored.get_or_init(|| Pair::new(all_functions(), self.declared)),
        };
        if rule.optional_old_self == Some(true) { &pair.optional } else { &pair.plain }
    }

    fn rule(&self, rule: Rule, schema: &Structural, declared: &Declared) -> Compiled {
        let mut compiled = Compiled {
            rule,
            program: None,
            error: None,
            uses_old_self: false,
            max_cost: 0,
            message: None,
            message_error: None,
            field: None,
        };
        if !compiled.rule.text.trim().is_empty()
            && let Err(why) = self.programs(&mut compiled, schema, declared)
        {
            compiled.error = Some(why);
        }
        compiled
    }

    fn programs(&self, compiled: &mut Compiled, schema: &Structural, declared: &Declared) -> Result<(), String> {
        let env = self.of(&compiled.rule, self.known.has_rule(&compiled.rule.text));
        let checked = env.compile(&compiled.rule.text).map_err(|issues| format!("compilation failed: {issues}"))?;
        if *checked.result_type() != Type::Bool {
            return Err("cel expression must evaluate to a bool".to_owned());
        }
        compiled.uses_old_self = uses_old_self(&checked);
        let program = Program::new(env, &checked).map_err(|why| format!("program instantiation failed: {why}"))?;
        compiled.max_cost = estimate::cost(&checked, Some(declared)).max;
        compiled.program = Some(program);
        if !compiled.rule.message_expression.is_empty() {
            let text = &compiled.rule.message_expression;
            match message(self.of(&compiled.rule, self.known.has_message(text)), text, declared) {
                Ok(message) => compiled.message = Some(message),
                Err(why) => {
                    compiled.message_error = Some(why);
                    return Ok(());
                }
            }
        }
        if !compiled.rule.field_path.is_empty() {
            let found = field_path::resolve(&compiled.rule.field_path, schema, Brackets::Allowed);
            compiled.field = found.ok().map(|(shown, _)| shown);
        }
        Ok(())
    }
}

fn message(env: &Env, text: &str, declared: &Declared) -> Result<Message, String> {
    let checked = env.compile(text).map_err(|issues| format!("messageExpression compilation failed: {issues}"))?;
    if *checked.result_type() != Type::String {
        return Err("messageExpression must evaluate to a string".to_owned());
    }
    let program =
        Program::new(env, &checked).map_err(|why| format!("messageExpression instantiation failed: {why}"))?;
    Ok(Message { program, max_cost: estimate::cost(&checked, Some(declared)).max })
}

fn uses_old_self(checked: &Checked) -> bool {
    let refers =
        |(i, reference): (usize, &Reference)| *reference == Reference::Variable && checked.ast.is_ident(i, OLD_SELF);
    checked.references.iter().enumerate().any(refers)
}
