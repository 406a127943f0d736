//! Expressions of admission: policies, mutations, match conditions of webhooks.

use super::Line;
use super::expressions::{Compiled, Expression};
use kubelith_cel::value::Map;
use kubelith_cel::{Env, Program, Val, estimate};
use kubelith_meta::Value;
use kubelith_rules::expression::{Dialect, Environment, Expressions, Purpose, Variable};
use std::sync::Arc;

/// An expression of a policy or webhook.
struct Part<'a> {
    path: String,
    purpose: Purpose,
    text: &'a str,
    /// How many variables stand before it.
    variables: usize,
    /// What is said if it is false, and the expression that says it.
    message: &'a str,
    message_expression: &'a str,
}

/// What one object has.
struct Parts<'a> {
    list: Vec<Part<'a>>,
    variables: Vec<Variable<'a>>,
    has_params: bool,
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or(&[])
}

fn parts(of: &Value) -> Parts<'_> {
    let mut parts =
        Parts { list: Vec::new(), variables: Vec::new(), has_params: of.at(&["spec", "paramKind"]).is_some() };
    let is_webhook = matches!(of.str_at(&["kind"]), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration");
    if is_webhook {
        for (i, webhook) in list(of, &["webhooks"]).iter().enumerate() {
            parts.conditions(list(webhook, &["matchConditions"]), &format!("webhooks[{i}].matchConditions"));
        }
        return parts;
    }
    if !matches!(of.str_at(&["kind"]), "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") {
        return parts;
    }
    parts.conditions(list(of, &["spec", "matchConditions"]), "spec.matchConditions");
    for (i, variable) in list(of, &["spec", "variables"]).iter().enumerate() {
        let expression = variable.str_at(&["expression"]);
        parts.add(format!("spec.variables[{i}].expression"), Purpose::Variable, expression);
        parts.variables.push(Variable { name: variable.str_at(&["name"]), expression });
    }
    for (i, validation) in list(of, &["spec", "validations"]).iter().enumerate() {
        let at = format!("spec.validations[{i}]");
        let message_expression = validation.str_at(&["messageExpression"]);
        parts.add(format!("{at}.expression"), Purpose::Validation, validation.str_at(&["expression"]));
        if let Some(part) = parts.list.last_mut() {
            part.message = validation.str_at(&["message"]);
            part.message_expression = message_expression;
        }
        if !message_expression.is_empty() {
            parts.add(format!("{at}.messageExpression"), Purpose::Message, message_expression);
        }
    }
    for (i, annotation) in list(of, &["spec", "auditAnnotations"]).iter().enumerate() {
        let at = format!("spec.auditAnnotations[{i}].valueExpression");
        parts.add(at, Purpose::AuditAnnotation, annotation.str_at(&["valueExpression"]));
    }
    for (i, mutation) in list(of, &["spec", "mutations"]).iter().enumerate() {
        for (key, purpose) in [("applyConfiguration", Purpose::ApplyConfiguration), ("jsonPatch", Purpose::JsonPatch)] {
            if let Some(text) = mutation.at(&[key, "expression"]).and_then(Value::as_str) {
                parts.add(format!("spec.mutations[{i}].{key}.expression"), purpose, text);
            }
        }
    }
    parts
}

impl<'a> Parts<'a> {
    fn add(&mut self, path: String, purpose: Purpose, text: &'a str) {
        let variables = self.variables.len();
        self.list.push(Part { path, purpose, text, variables, message: "", message_expression: "" });
    }

    fn conditions(&mut self, conditions: &'a [Value], path: &str) {
        for (i, condition) in conditions.iter().enumerate() {
            self.add(format!("{path}[{i}].expression"), Purpose::MatchCondition, condition.str_at(&["expression"]));
        }
    }

    fn env(&self, purpose: Purpose, variables: usize) -> Env {
        // Match conditions come before variables.
        let variables = if purpose == Purpose::MatchCondition { 0 } else { variables };
        let variables = &self.variables[..variables];
        let expressions = &Expressions::of(Dialect::default());
        Environment { expressions, purpose, has_params: self.has_params, variables, is_stored: false }.env()
    }

    fn compile(&self, part: &Part<'_>) -> Result<(Compiled, Program), String> {
        let env = self.env(part.purpose, part.variables);
        let checked = env.compile(part.text.trim()).map_err(|issues| issues.to_string())?;
        let (got, wanted) = (checked.result_type().to_string(), part.purpose.results());
        if !wanted.is_empty() && !wanted.contains(&got.as_str()) {
            return Err(format!("must evaluate to {}, not {got}", wanted.join(" or ")));
        }
        let program = Program::new(&env, &checked)?;
        let costs = estimate::costs(&checked, estimate::Sizes::Unknown);
        Ok((Compiled { checked, costs }, program))
    }
}

/// Servers bound what these cost while they run, not when they are written.
pub fn expressions(of: &Value) -> Vec<Expression> {
    let parts = parts(of);
    let expression = |part: &Part<'_>| Expression {
        path: part.path.clone(),
        text: part.text.into(),
        evaluations: 1,
        limit: None,
        compiled: parts.compile(part).map(|(compiled, _)| compiled),
    };
    parts.list.iter().map(expression).collect()
}

/// What a policy says of an object. Match conditions that are false end it.
pub fn outcomes(of: &Value, object: &Value, old: Option<&Value>, params: Option<&Value>) -> Result<Vec<Line>, String> {
    let parts = parts(of);
    let request = request(object, old);
    let null = Value::Null;
    let inputs = Inputs { object, old: old.unwrap_or(&null), params: params.unwrap_or(&null), request: &request };
    let mut lines = Vec::new();
    let mut known: Vec<(&str, Val<'_>)> = Vec::new();
    for part in &parts.list {
        let (_, program) = parts.compile(part)?;
        let env = parts.env(part.purpose, part.variables);
        let activation = inputs.variables(&env, &known);
        // The command ends when all is shown, and values may be parts of programs.
        let (program, activation) = (&*Box::leak(Box::new(program)), &*Box::leak(Box::new(activation)));
        let (result, cost) = program.eval(activation);
        let (path, purpose) = (&part.path, part.purpose);
        match result {
            Err(why) => lines.push(Line { text: format!("{path}: {why}"), fine: false }),
            Ok(Val::Bool(false)) if purpose == Purpose::MatchCondition => {
                lines.push(Line { text: format!("{path}: false, so the rest is not looked at"), fine: true });
                return Ok(lines);
            }
            Ok(Val::Bool(false)) if purpose == Purpose::Validation => {
                let message = match (part.message_expression, part.message) {
                    ("", "") => format!("failed expression: {}", part.text.trim()),
                    ("", message) => message.trim().to_owned(),
                    _ => "see messageExpression below".to_owned(),
                };
                lines.push(Line { text: format!("{path}: false (cost {cost}): {message}"), fine: false });
            }
            Ok(value) => {
                lines.push(Line { text: format!("{path}: {} (cost {cost})", shown(&value)), fine: true });
                if purpose == Purpose::Variable
                    && let Some(variable) = parts.variables.get(part.variables)
                {
                    known.push((variable.name, value));
                }
            }
        }
    }
    Ok(lines)
}

fn shown(value: &Val<'_>) -> String {
    match value.to_json() {
        Ok(json) => kubelith_meta::text::json(&json),
        Err(_) => match value.as_list() {
            Some(list) => format!("a list of {}", list.len()),
            None => value.type_name().to_owned(),
        },
    }
}

struct Inputs<'a> {
    object: &'a Value,
    old: &'a Value,
    params: &'a Value,
    request: &'a Value,
}

impl<'a> Inputs<'a> {
    /// Those that an environment has, in its order. Nobody can be asked for authorization here.
    fn variables(&self, env: &Env, known: &[(&'a str, Val<'a>)]) -> Vec<Option<Val<'a>>> {
        let value = |name: &str| match name {
            "object" => Some(Val::json(self.object)),
            "oldObject" => Some(Val::json(self.old)),
            "params" => Some(Val::json(self.params)),
            "request" => Some(Val::json(self.request)),
            "namespaceObject" => Some(Val::Null),
            "variables" => {
                let mut map = Map::with_capacity(known.len());
                for (name, value) in known {
                    map.insert(Val::Str(name), value.clone()).ok()?;
                }
                Some(Val::Map(Arc::new(map)))
            }
            _ => None,
        };
        env.variables().iter().map(|variable| value(&variable.name)).collect()
    }
}

/// As much of a request as an object tells.
fn request(object: &Value, old: Option<&Value>) -> Value {
    let (group, version) = match object.str_at(&["apiVersion"]).split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", object.str_at(&["apiVersion"])),
    };
    let text = |text: &str| Value::from(text);
    let kind = || {
        let kind = object.str_at(&["kind"]);
        Value::from([("group", text(group)), ("version", text(version)), ("kind", text(kind))])
    };
    Value::from([
        ("kind", kind()),
        ("requestKind", kind()),
        ("name", text(object.str_at(&["metadata", "name"]))),
        ("namespace", text(object.str_at(&["metadata", "namespace"]))),
        ("operation", text(if old.is_some() { "UPDATE" } else { "CREATE" })),
        ("userInfo", Value::from([("username", text("")), ("groups", Value::Array(Vec::new()))])),
        ("dryRun", Value::Bool(false)),
    ])
}
