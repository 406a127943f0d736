//! Admission policies: what both kinds share, then what they validate or change. Expressions are trimmed, remembered and shown
//! as the reference does it, which is not the same everywhere.

use crate::admissionregistration::policy::status;
use crate::admissionregistration::rule::{self, check_match};
use crate::admissionregistration::shared::{
    Conditions, FAILURE_POLICIES, REINVOCATION_POLICIES, check_metadata, expressions,
};
use kubelith_cel::parse::is_reserved;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1035_label, is_dns1123_subdomain};
use kubelith_rules::common::{Fields, SPEC, member, one_of, qualified_name, same_member, supported};
use kubelith_rules::expression::{self, Environment, Expression, Expressions, Purpose, Variable};
use kubelith_rules::internal::shown;
use kubelith_rules::{Env, Rules};
use std::collections::BTreeSet;

const MAX_AUDIT_ANNOTATIONS: usize = 20;

/// Bytes.
const MAX_ANNOTATION_EXPRESSION: usize = 5 * 1024;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];

pub const VALIDATING: Rules = Rules {
    create: |request, policy| check_validating(request.env, policy, None),
    update: |request, new, old| match request.subresource {
        "status" => status::check(member(new, "status")),
        _ => check_validating(request.env, new, Some(old)),
    },
};

pub const MUTATING: Rules = Rules {
    create: |request, policy| check_mutating(request.env, policy, None),
    update: |request, new, old| check_mutating(request.env, new, Some(old)),
};

fn check_validating(env: &Env, policy: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = check_metadata(policy);
    let spec = member(policy, "spec");
    let old = old.map(|old| member(old, "spec"));
    let stored = |list: &str, key: &str| old.map(|old| expressions(old.list(list), key)).unwrap_or_default();
    let stored_validations = stored("validations", "expression");
    check_head(spec, &mut errors);
    check_conditions(env, spec, old, &mut errors);
    let mut compiler = Compiler::of(env, spec);
    compiler.check_variables(spec, &stored_validations, &mut errors);
    let (validations, annotations) = (spec.list("validations"), spec.list("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for key in ["validations", "auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.push(Error::required(&SPEC.child(key), detail));
        }
        return errors;
    }
    let stored_messages = stored("validations", "messageExpression");
    for (i, validation) in validations.iter().enumerate() {
        let path = SPEC.item("validations", i);
        check_validation(validation, &compiler, [&stored_validations, &stored_messages], &path, &mut errors);
    }
    check_annotations(policy, &compiler, &stored("auditAnnotations", "valueExpression"), &mut errors);
    errors
}

fn check_mutating(env: &Env, policy: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = check_metadata(policy);
    let spec = member(policy, "spec");
    let old = old.map(|old| member(old, "spec"));
    check_head(spec, &mut errors);
    rule::check_mutating(member(spec, "matchConstraints"), &SPEC.child("matchConstraints"), &mut errors);
    check_conditions(env, spec, old, &mut errors);
    let mut compiler = Compiler::of(env, spec);
    compiler.check_variables(spec, &BTreeSet::new(), &mut errors);
    if spec.list("mutations").is_empty() {
        errors.push(Error::required(&SPEC.child("mutations"), "mutations must contain at least one item"));
    }
    // Also for patches the reference asks which apply configurations there were.
    let mutations = old.map(|old| old.list("mutations")).unwrap_or_default();
    let stored = mutations.iter().map(|mutation| member(mutation, "applyConfiguration").text("expression")).collect();
    for (i, mutation) in spec.list("mutations").iter().enumerate() {
        check_mutation(mutation, &compiler, &stored, &SPEC.item("mutations", i), &mut errors);
    }
    one_of(spec.text("reinvocationPolicy"), &REINVOCATION_POLICIES, &SPEC.child("reinvocationPolicy"), &mut errors);
    errors
}

/// What both kinds begin with.
fn check_head(spec: &Value, errors: &mut ErrorList) {
    let at = SPEC.child("failurePolicy");
    match spec.some("failurePolicy") {
        None => errors.push(Error::required(&at, "")),
        Some(policy) => supported(policy.or_empty(), &FAILURE_POLICIES, &at, errors),
    }
    if let Some(kind) = spec.some("paramKind") {
        check_param_kind(kind, &SPEC.child("paramKind"), errors);
    }
    let path = SPEC.child("matchConstraints");
    let Some(constraints) = spec.some("matchConstraints") else {
        return errors.push(Error::required(&path, ""));
    };
    check_match(constraints, &path, errors);
    // Without a rule it is not known what `object` is.
    if constraints.list("resourceRules").is_empty() {
        errors.push(Error::required(&path.child("resourceRules"), ""));
    }
}

fn check_param_kind(param_kind: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("apiVersion");
    let text = param_kind.text("apiVersion");
    let (group, version) = if text == "/" { ("", "") } else { text.split_once('/').unwrap_or(("", text)) };
    if text.is_empty() {
        errors.push(Error::required(&at, ""));
    } else if version.contains('/') {
        errors.push(Error::invalid(&at, text, format!("unexpected GroupVersion string: {text}")));
    } else {
        let problems = if group.is_empty() { Vec::new() } else { is_dns1123_subdomain(group) };
        if !problems.is_empty() {
            errors.push(Error::invalid(&at, group, problems.join(",")));
        }
        let problems = is_dns1035_label(version);
        if version.is_empty() {
            errors.push(Error::invalid(&at, text, "version must be specified"));
        } else if !problems.is_empty() {
            errors.push(Error::invalid(&at, version, problems.join(",")));
        }
    }
    let at = path.child("kind");
    let kind = param_kind.text("kind");
    let problems = is_dns1035_label(&kind.to_lowercase());
    if kind.is_empty() {
        errors.push(Error::required(&at, ""));
    } else if !problems.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        errors.push(Error::invalid(&at, kind, detail));
    }
}

/// Conditions that were fine stay so, as long as nothing changes that they depend on.
fn check_conditions(env: &Env, spec: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let is_kept = |old: &Value| same_member(spec, old, "paramKind") && same_member(spec, old, "matchConditions");
    if old.is_some_and(is_kept) {
        return;
    }
    let conditions = Conditions {
        expressions: &env.expressions,
        has_params: spec.has("paramKind"),
        stored: old.map(|old| expressions(old.list("matchConditions"), "expression")).unwrap_or_default(),
    };
    conditions.check(spec.list("matchConditions"), &SPEC.child("matchConditions"), errors);
}

/// What the expressions of one policy are compiled with.
struct Compiler<'a> {
    expressions: &'a Expressions,
    has_params: bool,
    variables: Vec<Variable<'a>>,
}

impl<'a> Compiler<'a> {
    fn of(env: &'a Env, spec: &Value) -> Compiler<'a> {
        Compiler { expressions: &env.expressions, has_params: spec.has("paramKind"), variables: Vec::new() }
    }

    fn check(
        &self,
        purpose: Purpose,
        expression: Expression<'_>,
        is_stored: bool,
        path: &Path<'_>,
        errors: &mut ErrorList,
    ) {
        let Compiler { expressions, has_params, ref variables } = *self;
        let environment = Environment { expressions, purpose, has_params, variables, is_stored };
        expression::check(expression, environment, path, errors);
    }

    /// Each variable may use those before it.
    fn check_variables(&mut self, spec: &'a Value, stored: &BTreeSet<&str>, errors: &mut ErrorList) {
        for (i, variable) in spec.list("variables").iter().enumerate() {
            let path = SPEC.item("variables", i);
            let (name, expression) = (variable.text("name"), variable.text("expression"));
            if name.trim().is_empty() {
                errors.push(Error::required(&path.child("name"), "name is not specified"));
            } else if !is_identifier(name) {
                errors.push(Error::invalid(&path.child("name"), name, "must be a valid CEL identifier"));
            }
            if expression.trim().is_empty() {
                errors.push(Error::required(&path.child("expression"), "expression is not specified"));
                continue;
            }
            let is_stored = stored.contains(expression);
            self.check(Purpose::Variable, Expression::plain(expression), is_stored, &path.child("expression"), errors);
            self.variables.push(Variable { name, expression });
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let is_word = name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
    is_word && !name.starts_with(|c: char| c.is_ascii_digit()) && !is_reserved(name)
}

fn check_validation(
    validation: &Value,
    compiler: &Compiler<'_>,
    [stored, stored_messages]: [&BTreeSet<&str>; 2],
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    const NOT_EMPTY: &str = "must be non-empty if specified";
    let at = path.child("expression");
    match validation.text("expression") {
        text if text.trim().is_empty() => errors.push(Error::required(&at, "expression is not specified")),
        text => compiler.check(Purpose::Validation, Expression::plain(text), stored.contains(text), &at, errors),
    }
    let at = path.child("messageExpression");
    match validation.text("messageExpression") {
        "" => {}
        text if text.trim().is_empty() => errors.push(Error::invalid(&at, text, NOT_EMPTY)),
        text => compiler.check(Purpose::Message, Expression::plain(text), stored_messages.contains(text), &at, errors),
    }
    let at = path.child("message");
    match validation.text("message") {
        "" => {}
        text if text.trim().is_empty() => errors.push(Error::invalid(&at, text, NOT_EMPTY)),
        text if text.trim().contains(['\n', '\r']) => {
            errors.push(Error::invalid(&at, text, "must not contain line breaks"));
        }
        _ => {}
    }
    if let Some(reason) = validation.some("reason") {
        supported(reason.or_empty(), &REASONS, &path.child("reason"), errors);
    }
}

fn check_annotations(policy: &Value, compiler: &Compiler<'_>, stored: &BTreeSet<&str>, errors: &mut ErrorList) {
    let spec = member(policy, "spec");
    let annotations = spec.list("auditAnnotations");
    let path = SPEC.child("auditAnnotations");
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.push(Error::invalid(&path, shown("[]AuditAnnotation", spec.get("auditAnnotations")), detail));
    }
    let mut keys = BTreeSet::new();
    for (i, annotation) in annotations.iter().enumerate() {
        let path = path.index(i);
        let key = annotation.text("key");
        match policy.meta().name() {
            "" => errors.push(Error::invalid(&path.child("key"), key, "requires metadata.name be non-empty")),
            name => qualified_name(&format!("{name}/{key}"), &path.child("key"), errors),
        }
        let at = path.child("valueExpression");
        let text = annotation.text("valueExpression");
        let expression = Expression { source: text.trim(), shown: text };
        if expression.source.is_empty() {
            errors.push(Error::required(&at, "valueExpression is not specified"));
        } else if expression.source.len() > MAX_ANNOTATION_EXPRESSION {
            let detail = format!("must not exceed {MAX_ANNOTATION_EXPRESSION} bytes in length");
            errors.push(Error::required(&at, detail));
        } else {
            compiler.check(Purpose::AuditAnnotation, expression, stored.contains(text), &at, errors);
        }
        if !keys.insert(key) {
            errors.push(Error::duplicate(&path.child("key"), key));
        }
    }
}

fn check_mutation(
    mutation: &Value,
    compiler: &Compiler<'_>,
    stored: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let (kind, key, other, purpose) = match mutation.text("patchType") {
        kind @ "JSONPatch" => (kind, "jsonPatch", "applyConfiguration", Purpose::JsonPatch),
        kind @ "ApplyConfiguration" => (kind, "applyConfiguration", "jsonPatch", Purpose::ApplyConfiguration),
        kind => return one_of(kind, &PATCH_TYPES, &path.child("patchType"), errors),
    };
    let at = path.child(key);
    match mutation.some(key).map(|patch| patch.text("expression")) {
        None => errors.push(Error::required(&at, format!("must be specified when patchType is {kind}"))),
        Some(text) if text.trim().is_empty() => errors.push(Error::required(&at.child("expression"), "")),
        Some(text) => {
            compiler.check(purpose, Expression::trimmed(text), stored.contains(text), &at.child("expression"), errors);
        }
    }
    if mutation.has(other) {
        let detail = format!("must not be specified when patchType is {kind}");
        errors.push(Error::invalid(&path.child(other), format!("{{{other}}}"), detail));
    }
}
