//! An object held against its rules.
//!
//! A rule that is broken where nothing changed since the object was last written is a warning; one about changes is an
//! error wherever it is broken. Everything is paid for from one budget; when that is used up, the object is refused.

use super::OBJECT_LIMIT;
use super::compile::{Compiled, Message};
use super::tree::{Node, RuleTree, Unseeing};
use kubelith_cel::value::Res;
use kubelith_cel::{Activation, EvalError, Val};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::text::quote;
use kubelith_meta::{Str, Value};
use kubelith_schema::structural::Old;

/// What a messageExpression may come to, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

const UNSEEING: &str = "rule compiler initialization error: failed to convert to declType for CEL validation rules";

/// What the rules say of an object.
#[derive(Debug, Default)]
pub struct Outcome {
    pub errors: ErrorList,
    /// Rules that unchanged parts break.
    pub warnings: Vec<String>,
}

/// What may still be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget(u64);

impl Budget {
    pub const OBJECT: Budget = Budget(OBJECT_LIMIT);
}

/// The budget is used up, or something went wrong after which nothing more is evaluated.
struct Exhausted;

impl RuleTree {
    /// What the rules say of a new or changed object, and what is left of the budget: nothing if it ran out.
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Outcome {
        let place = Place { old, current: old.map(|old| Old::new(&self.schema, old)), parent: None, is_root: true };
        let mut run = Run { budget: Budget::OBJECT.0, outcome: Outcome::default() };
        let _ = run.node(&self.root, object, place, &Path::ROOT);
        run.outcome
    }

    /// The same for a default in a schema, which is looked at as if it replaced `old`. Answers what is left to spend.
    pub fn check_default(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
        budget: Budget,
    ) -> (ErrorList, Option<Budget>) {
        let place = Place { old, current: None, parent: None, is_root: true };
        let mut run = Run { budget: budget.0, outcome: Outcome::default() };
        let left = run.node(&self.root, value, place, path).is_ok().then_some(Budget(run.budget));
        (run.outcome.errors, left)
    }
}

/// The variables of a rule, in the order of their slots.
struct Variables<'a> {
    this: Res<'a>,
    old: Option<Res<'a>>,
}

impl<'a> Activation<'a> for Variables<'a> {
    fn variable(&self, slot: usize) -> Option<Res<'a>> {
        match slot {
            0 => Some(self.this.clone()),
            1 => self.old.clone(),
            _ => None,
        }
    }
}

/// What is known of the old state of the value that is looked at.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// What `oldSelf` is.
    old: Option<&'a Value>,
    /// The old value by the rules of ratcheting, or the nearest one above that there is.
    current: Option<Old<'a>>,
    parent: Option<(Old<'a>, &'a Value)>,
    is_root: bool,
}

impl<'a> Place<'a> {
    /// Whether nothing changed here, as far as that can be told.
    fn is_unchanged(&self, value: &Value) -> bool {
        match (self.current, self.parent) {
            (Some(old), _) => old.is_unchanged(value),
            (None, Some((old, above))) => old.is_unchanged(above),
            (None, None) => false,
        }
    }

    /// The place of a part, whose old state is found by `find`.
    fn below(
        &self,
        value: &'a Value,
        old: Option<&'a Value>,
        find: impl FnOnce(Old<'a>) -> Option<Old<'a>>,
    ) -> Place<'a> {
        match self.current {
            Some(current) => Place { old, current: find(current), parent: Some((current, value)), is_root: false },
            None => Place { old, current: None, parent: self.parent, is_root: false },
        }
    }

    fn member(&self, value: &'a Value, key: &str) -> Place<'a> {
        let old = self.old.and_then(|old| old.get(key));
        if self.is_root && matches!(key, "apiVersion" | "kind") {
            // Both are those of the request's version: whether they changed cannot be seen.
            return Place { old, current: None, parent: None, is_root: false };
        }
        self.below(value, old, |current| current.key(key))
    }

    fn item(&self, list: &'a Value, item: &Value, keys: &[Str]) -> Place<'a> {
        let same = |old: &&Value| keys.iter().all(|key| old.get(key) == item.get(key));
        let old = match self.old {
            Some(Value::Array(items)) if !keys.is_empty() && item.as_object().is_some() => {
                items.iter().filter(|old| old.as_object().is_some()).find(same)
            }
            _ => None,
        };
        self.below(list, old, |current| current.index(item))
    }
}

struct Run {
    budget: u64,
    outcome: Outcome,
}

impl Run {
    fn node<'a>(&mut self, node: &Node, value: &'a Value, place: Place<'a>, path: &Path<'_>) -> Result<(), Exhausted> {
        if value.is_null() {
            return Ok(());
        }
        self.rules(node, value, place, path)?;
        for part in &node.all_of {
            self.node(part, value, Place { current: None, ..place }, path)?;
        }
        match value {
            Value::Array(items) => {
                let Some(below) = &node.items else { return Ok(()) };
                for (i, item) in items.iter().enumerate() {
                    self.node(below, item, place.item(value, item, &node.keys), &path.index(i))?;
                }
            }
            Value::Object(map) => {
                if let Some(below) = &node.additional {
                    for (key, member) in map.iter() {
                        self.node(below, member, place.member(value, key), &path.key(key))?;
                    }
                }
                for (key, below) in &node.properties {
                    if let Some(member) = map.get(key) {
                        self.node(below, member, place.member(value, key), &path.child(key))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rules(&mut self, node: &Node, value: &Value, place: Place<'_>, path: &Path<'_>) -> Result<(), Exhausted> {
        let rules = match &node.rules {
            Ok(rules) => rules,
            Err(Unseeing) => {
                self.outcome.errors.push(Error::invalid(path, node.kind, UNSEEING));
                return Ok(());
            }
        };
        if rules.is_empty() {
            return Ok(());
        }
        if self.budget == 0 {
            return self.give_up(Error::invalid(path, node.kind, OUT_OF_BUDGET));
        }
        let old = place.old.filter(|old| !old.is_null());
        for rule in rules {
            self.rule(node, rule, value, Place { old, ..place }, path)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        node: &Node,
        compiled: &Compiled,
        value: &Value,
        place: Place<'_>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let rule = &compiled.rule;
        if let Some(why) = &compiled.error {
            self.outcome.errors.push(Error::invalid(path, node.kind, format!("rule compile error: {why}")));
            return Ok(());
        }
        let (Some(program), Some(declared)) = (&compiled.program, &node.declared) else { return Ok(()) };
        let optional = rule.optional_old_self == Some(true);
        if compiled.uses_old_self && place.old.is_none() && !optional {
            return Ok(());
        }
        let this = Val::typed(value, declared);
        let old = place.old.map(|old| Val::typed(old, declared));
        // An expression for the message gets the plain old value even where the rule gets an optional one, as in the
        // reference: there it fails, and the message is the default.
        let plain = Variables { this: this.clone(), old: old.clone() };
        let wrapped = optional.then(|| {
            let old = old.map_or(Ok(Val::Optional(None)), |old| old.map(Val::some));
            Variables { this, old: Some(old) }
        });
        let (answer, cost) = program.eval(wrapped.as_ref().unwrap_or(&plain));
        self.pay(cost).or_else(|Exhausted| self.give_up(Error::invalid(path, node.kind, OUT_OF_BUDGET)))?;
        match answer {
            Ok(Val::Bool(true)) => return Ok(()),
            Ok(_) => {}
            Err(error) => return self.failed(node, compiled, &error, path),
        }
        let at = match &compiled.field {
            Some(field) => path.child(field),
            None => *path,
        };
        let is_warning = !compiled.uses_old_self && place.is_unchanged(value);
        let detail = match compiled.message.as_ref().map(|m| self.message(m, &rule.message_expression, &plain)) {
            Some(Ok(Some(said))) => said,
            Some(Err(why)) => {
                self.say(Error::invalid(&at, node.kind, why), is_warning);
                return Err(Exhausted);
            }
            Some(Ok(None)) | None => rule.failure(),
        };
        let shown = match node.kind {
            "object" | "array" => BadValue::Omitted,
            _ => BadValue::from(value),
        };
        self.say(rule.broken(&at, shown, detail), is_warning);
        Ok(())
    }

    /// A rule that could not be evaluated to its end.
    fn failed(&mut self, node: &Node, rule: &Compiled, error: &EvalError, path: &Path<'_>) -> Result<(), Exhausted> {
        let rule = rule.rule.shown();
        if error.is_cost() {
            let why = format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
            );
            return self.give_up(Error::invalid(path, node.kind, why));
        }
        let why = if error.message().starts_with("no such overload") {
            format!(
                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
            )
        } else {
            format!("{error} evaluating rule: {rule}")
        };
        self.outcome.errors.push(Error::invalid(path, node.kind, why));
        Ok(())
    }

    /// What an expression says of a broken rule; nothing if it says nothing of use. An error ends the evaluation.
    fn message<'a>(
        &mut self,
        message: &'a Message,
        text: &str,
        variables: &'a Variables<'a>,
    ) -> Result<Option<String>, String> {
        let (answer, cost) = message.program.eval(variables);
        if self.pay(cost).is_err() {
            let why = "messageExpression evaluation failed due to running out of cost budget, no further validation \
                       rules will be run";
            return Err(why.to_owned());
        }
        match answer {
            Err(error) if error.is_cost() => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                quote(text)
            )),
            Err(_) => Ok(None),
            Ok(said) => {
                let said = said.as_str().map(str::trim).unwrap_or_default();
                let is_usable = !said.is_empty() && said.len() <= MAX_MESSAGE && !said.contains('\n');
                Ok(is_usable.then(|| said.to_owned()))
            }
        }
    }

    fn say(&mut self, error: Error, is_warning: bool) {
        match is_warning {
            true => self.outcome.warnings.push(error.to_string()),
            false => self.outcome.errors.push(error),
        }
    }

    fn pay(&mut self, cost: u64) -> Result<(), Exhausted> {
        self.budget = self.budget.checked_sub(cost).ok_or(Exhausted)?;
        Ok(())
    }

    fn give_up(&mut self, error: Error) -> Result<(), Exhausted> {
        self.outcome.errors.push(error);
        Err(Exhausted)
    }
}
