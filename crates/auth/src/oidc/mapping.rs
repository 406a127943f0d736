//! From claims to a user.

use crate::config::JwtConfig;
use crate::config::authentication::{Mapping, Rule};
use crate::config::authentication_rules::CompiledJwt;
use crate::error::AuthError;
use crate::expression::Expression;
use crate::user::{EXTRA_CREDENTIAL_ID, User};
use kubelith_meta::text::quote;
use kubelith_meta::{Map, Str, Value};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// The user that verified claims stand for, if they pass the configured rules.
pub fn user_of(claims: &Value, config: &JwtConfig, compiled: &CompiledJwt) -> Result<User, AuthError> {
    let with_doubles = compiled.uses_claims().then(|| as_doubles(claims));
    // What is read as a text is told with its own form, so only expressions get the other one.
    let seen = Seen { claims, by_expressions: with_doubles.as_ref().unwrap_or(claims) };
    let user = User {
        name: username(seen, &config.username, compiled.username.as_deref())?,
        groups: groups(seen, &config.groups, compiled.groups.as_deref())?,
        uid: uid(seen, &config.uid, compiled.uid.as_deref())?,
        extra: extra(seen, compiled)?,
    };
    for rule in config.claim_rules.iter().filter(|r| !r.claim.is_empty()) {
        let claim = &rule.claim;
        if claims.get(claim).is_none() {
            return Err(failed("", format!("required claim {claim} not present in ID token")));
        }
        let got = text(claims, claim).map_err(|e| failed(&format!("parse claim {claim}"), e))?;
        if got != rule.required_value {
            let want = &rule.required_value;
            return Err(failed("", format!("required claim {claim} value does not match. Got = {got}, want = {want}")));
        }
    }
    let (claim_rules, user_rules) = (&compiled.claim_rules, &compiled.user_rules);
    check_rules(claim_rules, seen.by_expressions)
        .map_err(|e| failed("error evaluating claim validation expression", e))?;
    if !user_rules.is_empty() {
        check_rules(user_rules, &user_value(&user))
            .map_err(|e| failed("error evaluating user info validation rule", e))?;
    }
    Ok(user)
}

/// The claims of a token.
#[derive(Clone, Copy)]
struct Seen<'a> {
    claims: &'a Value,
    /// Every number is a double there.
    by_expressions: &'a Value,
}

fn as_doubles(value: &Value) -> Value {
    match value {
        Value::Int(i) => Value::Float(*i as f64),
        Value::Array(items) => Value::Array(items.iter().map(as_doubles).collect()),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k, as_doubles(v))).collect()),
        other => other.clone(),
    }
}

fn evaluate(expression: &dyn Expression, text: &str, subject: &Value) -> Result<Value, String> {
    expression.evaluate(subject).map_err(|e| format!("expression '{text}' resulted in error: {e}"))
}

fn failed(doing: &str, what: impl Display) -> AuthError {
    AuthError::new(if doing.is_empty() { format!("oidc: {what}") } else { format!("oidc: {doing}: {what}") })
}

fn username(seen: Seen<'_>, mapping: &Mapping, expression: Option<&dyn Expression>) -> Result<Str, AuthError> {
    if let Some(expression) = expression {
        let doing = "error evaluating username claim expression";
        let name = evaluate(expression, &mapping.expression, seen.by_expressions);
        return match name.map_err(|e| failed(doing, e))? {
            Value::String(name) if name.is_empty() => {
                Err(failed("", "empty username via CEL expression is not allowed"))
            }
            Value::String(name) => Ok(name),
            _ => Err(failed(doing, "username claim expression must return a string")),
        };
    }
    let (claims, claim) = (seen.claims, mapping.claim.as_str());
    let doing = format!("parse username claims {}", quote(claim));
    let name = required_text(claims, claim).map_err(|e| failed(&doing, e))?;
    if claim == "email" {
        match claims.get("email_verified") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false) | Value::Null) => return Err(failed("", "email not verified")),
            Some(other) => return Err(failed("parse 'email_verified' claim", wrong_type(other, "bool"))),
        }
    }
    Ok(format!("{}{name}", mapping.prefix.as_deref().unwrap_or("")).into())
}

fn groups(seen: Seen<'_>, mapping: &Mapping, expression: Option<&dyn Expression>) -> Result<Vec<Str>, AuthError> {
    if let Some(value) = seen.claims.get(&mapping.claim).filter(|_| !mapping.claim.is_empty()) {
        let doing = format!("parse groups claim {}", quote(&mapping.claim));
        let prefix = mapping.prefix.as_deref().unwrap_or("");
        let groups = one_or_many(value).map_err(|e| failed(&doing, e))?;
        return Ok(groups.iter().map(|g| format!("{prefix}{g}").into()).collect());
    }
    let Some(expression) = expression else { return Ok(Vec::new()) };
    let groups = evaluate(expression, &mapping.expression, seen.by_expressions).and_then(|v| strings_of(&v));
    groups.map_err(|e| failed("error evaluating group claim expression", e))
}

fn uid(seen: Seen<'_>, mapping: &Mapping, expression: Option<&dyn Expression>) -> Result<Str, AuthError> {
    if !mapping.claim.is_empty() {
        let doing = format!("parse uid claim {}", quote(&mapping.claim));
        return required_text(seen.claims, &mapping.claim).map_err(|e| failed(&doing, e));
    }
    let Some(expression) = expression else { return Ok(Str::default()) };
    let doing = "error evaluating uid claim expression";
    match evaluate(expression, &mapping.expression, seen.by_expressions).map_err(|e| failed(doing, e))? {
        Value::String(uid) => Ok(uid),
        _ => Err(failed(doing, "uid claim expression must return a string")),
    }
}

fn extra(seen: Seen<'_>, compiled: &CompiledJwt) -> Result<BTreeMap<Str, Vec<Str>>, AuthError> {
    let mut extra = BTreeMap::new();
    let id = seen.claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty());
    extra.extend(id.map(|id| (EXTRA_CREDENTIAL_ID.into(), vec![format!("JTI={id}").into()])));
    let mut results = Vec::with_capacity(compiled.extra.len());
    for (mapping, expression) in &compiled.extra {
        let value = evaluate(expression.as_ref(), &mapping.expression, seen.by_expressions);
        // The reference says no more of it.
        results.push((mapping, value.map_err(AuthError::new)?));
    }
    for (mapping, value) in results {
        let doing = format!("error evaluating extra claim expression: {}", mapping.expression);
        let values = strings_of(&value).map_err(|e| failed(&doing, e))?;
        if !values.is_empty() {
            extra.insert(mapping.key.clone(), values);
        }
    }
    Ok(extra)
}

fn check_rules(rules: &[(Rule, Arc<dyn Expression>)], subject: &Value) -> Result<(), String> {
    // All are evaluated before one is judged.
    let evaluate =
        |(rule, expression): &(Rule, Arc<dyn Expression>)| evaluate(expression.as_ref(), &rule.expression, subject);
    let results = rules.iter().map(evaluate).collect::<Result<Vec<Value>, String>>()?;
    for ((rule, _), result) in rules.iter().zip(results) {
        match result {
            Value::Bool(true) => {}
            Value::Bool(false) => {
                return Err(format!("validation expression '{}' failed: {}", rule.expression, rule.message));
            }
            _ => return Err("validation expression must return a boolean".into()),
        }
    }
    Ok(())
}

/// The user as expressions see it: every field is there.
fn user_value(user: &User) -> Value {
    let extra: Map = user.extra.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    Value::from([
        ("extra", Value::Object(extra)),
        ("groups", user.groups.clone().into()),
        ("uid", user.uid.clone().into()),
        ("username", user.name.clone().into()),
    ])
}

fn required_text(claims: &Value, claim: &str) -> Result<Str, String> {
    if claims.get(claim).is_none() {
        return Err("claim not present".into());
    }
    text(claims, claim)
}

/// Null reads as empty, as the reference's decoder has it.
fn text(claims: &Value, claim: &str) -> Result<Str, String> {
    match claims.get(claim) {
        None | Some(Value::Null) => Ok(Str::default()),
        Some(Value::String(s)) => Ok(s.clone()),
        Some(other) => Err(wrong_type(other, "string")),
    }
}

fn one_or_many(value: &Value) -> Result<Vec<Str>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(one) => Ok(vec![one.clone()]),
        Value::Array(list) if list.iter().all(|v| matches!(v, Value::String(_) | Value::Null)) => {
            Ok(list.iter().map(|v| v.as_str().unwrap_or("").into()).collect())
        }
        other => Err(wrong_type(other, "string")),
    }
}

/// The result of an expression; what is empty in it is left out.
fn strings_of(value: &Value) -> Result<Vec<Str>, String> {
    let wrong = || "expression must return a string or a list of strings".to_string();
    let list = match value {
        Value::Null => Vec::new(),
        Value::String(one) => vec![one.clone()],
        Value::Array(list) => {
            list.iter().map(|v| v.as_str().map(Str::from).ok_or_else(wrong)).collect::<Result<_, _>>()?
        }
        _ => return Err(wrong()),
    };
    Ok(list.into_iter().filter(|s| !s.is_empty()).collect())
}

fn wrong_type(value: &Value, wanted: &str) -> String {
    let found = kubelith_meta::text::json_kind(value);
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}
