//! FlowSchemas and PriorityLevelConfigurations.

use crate::common::{Fields, SPEC, invalid_all, member, meta, name_full};
use crate::internal;
use crate::{Request, Rules};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use std::collections::BTreeSet;

const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
const MAX_HASH_BITS: u32 = 60;
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub fn rules(plural: &str) -> Option<Rules> {
    Some(match plural {
        "flowschemas" => Rules {
            create: |_, schema| flow_schema(schema),
            update: |request, new, _| match request.subresource {
                "status" => status(new),
                _ => flow_schema(new),
            },
        },
        "prioritylevelconfigurations" => Rules {
            create: priority_level,
            update: |request, new, _| match request.subresource {
                "status" => status(new),
                _ => priority_level(request, new),
            },
        },
        _ => return None,
    })
}

/// Conditions have types, each once.
fn status(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut types = BTreeSet::new();
    for (i, condition) in member(object, "status").list("conditions").iter().enumerate() {
        let conditions = Path::of(&["status", "conditions"]);
        let item = conditions.index(i);
        let (path, kind) = (item.child("type"), condition.text("type"));
        if !types.insert(kind) {
            errors.push(Error::duplicate(&path, BadValue::json(kind)));
        }
        if kind.is_empty() {
            errors.push(Error::required(&path, ""));
        }
    }
    errors
}

fn flow_schema(schema: &Value) -> ErrorList {
    let mut errors = meta(schema, Namespacing::Forbidden, name_is_dns_subdomain);
    let (spec, name) = (member(schema, "spec"), schema.meta().name());
    let precedence = spec.number("matchingPrecedence");
    let path = SPEC.child("matchingPrecedence");
    if precedence <= 0 {
        errors.push(Error::invalid(&path, precedence, "must be a positive value"));
    }
    if precedence > MAX_PRECEDENCE {
        errors.push(Error::invalid(&path, precedence, format!("must not be greater than {MAX_PRECEDENCE}")));
    }
    if precedence == 1 && name != "exempt" {
        errors.push(Error::invalid(&path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"));
    }
    if let Some(method) = spec.some("distinguisherMethod")
        && !["ByNamespace", "ByUser"].contains(&method.text("type"))
    {
        let path = SPEC.child("distinguisherMethod");
        let shown = internal::shown("FlowDistinguisherMethod", Some(method));
        errors.push(Error::not_supported(&path.child("type"), shown, ["ByNamespace", "ByUser"]));
    }
    let level = spec.get("priorityLevelConfiguration").map_or("", |l| l.text("name"));
    let reference = SPEC.child("priorityLevelConfiguration");
    if level.is_empty() {
        errors.push(Error::required(&reference.child("name"), "must reference a priority level"));
    } else {
        name_full(name_is_dns_subdomain, level, &reference.child("name"), &mut errors);
    }
    for (i, rule) in spec.list("rules").iter().enumerate() {
        check_rules(rule, &SPEC.item("rules", i), &mut errors);
    }
    if let Some(fixed) = mandatory_schema(name)
        && !internal::same("FlowSchemaSpec", Some(spec), Some(&fixed))
    {
        let shown = internal::shown("FlowSchemaSpec", Some(spec));
        errors.push(Error::invalid(&SPEC, shown, format!("spec of '{name}' must equal the fixed value")));
    }
    errors.extend(status(schema));
    errors
}

/// The schemas that the server cannot do without have a fixed form.
fn mandatory_schema(name: &str) -> Option<Value> {
    let (precedence, groups, method) = match name {
        "exempt" => (1, &["system:masters"][..], None),
        "catch-all" => (MAX_PRECEDENCE, &["system:unauthenticated", "system:authenticated"][..], Some("ByUser")),
        _ => return None,
    };
    let all = || Value::Array(vec!["*".into()]);
    let subject = |group: &&str| Value::from([("kind", "Group".into()), ("group", Value::from([("name", *group)]))]);
    let resources = Value::from([
        ("verbs", all()),
        ("apiGroups", all()),
        ("resources", all()),
        ("clusterScope", Value::Bool(true)),
        ("namespaces", all()),
    ]);
    let paths = Value::from([("verbs", all()), ("nonResourceURLs", all())]);
    let rule = Value::from([
        ("subjects", Value::Array(groups.iter().map(subject).collect())),
        ("resourceRules", Value::Array(vec![resources])),
        ("nonResourceRules", Value::Array(vec![paths])),
    ]);
    let mut spec = Value::from([
        ("priorityLevelConfiguration", Value::from([("name", name)])),
        ("matchingPrecedence", Value::Int(precedence)),
        ("rules", Value::Array(vec![rule])),
    ]);
    if let Some(method) = method {
        spec.set_at(&["distinguisherMethod"], Value::from([("type", method)]));
    }
    Some(spec)
}

fn check_rules(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if rule.list("subjects").is_empty() {
        errors.push(Error::required(&path.child("subjects"), "subjects must contain at least one value"));
    }
    for (i, subject) in rule.list("subjects").iter().enumerate() {
        check_subject(subject, &path.item("subjects", i), errors);
    }
    let (resources, others) = (rule.list("resourceRules"), rule.list("nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(Error::required(path, detail));
    }
    for (i, rule) in resources.iter().enumerate() {
        check_resource_rule(rule, &path.item("resourceRules", i), errors);
    }
    for (i, rule) in others.iter().enumerate() {
        check_non_resource_rule(rule, &path.item("nonResourceRules", i), errors);
    }
}

fn check_subject(subject: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const KINDS: [(&str, &str); 3] = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = subject.text("kind");
    let Some((_, own)) = KINDS.into_iter().find(|(name, _)| *name == kind) else {
        let known = ["Group", "ServiceAccount", "User"];
        errors.push(Error::not_supported(&path.child("kind"), BadValue::json(kind), known));
        return;
    };
    let at = path.child(own);
    match subject.some(own) {
        None => errors.push(Error::required(&at, format!("{own} is required when subject kind is '{kind}'"))),
        Some(who) => {
            let name = who.text("name");
            if name.is_empty() {
                errors.push(Error::required(&at.child("name"), ""));
            } else if own == "serviceAccount" && name != "*" {
                name_full(name_is_dns_subdomain, name, &at.child("name"), errors);
            }
            if own == "serviceAccount" {
                let namespace = who.text("namespace");
                if namespace.is_empty() {
                    let detail = "must specify namespace for service account";
                    errors.push(Error::required(&at.child("namespace"), detail));
                } else {
                    name_full(name_is_dns_label, namespace, &at.child("namespace"), errors);
                }
            }
        }
    }
    // The reference looks at the user before the others, whatever the order of the kinds.
    for (other, field) in [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")] {
        if field != own && subject.has(field) {
            let detail = format!("{field} is forbidden when subject kind is not '{other}'");
            errors.push(Error::forbidden(&path.child(field), detail));
        }
    }
}

fn check_verbs(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let verbs = rule.texts("verbs");
    let path = path.child("verbs");
    if verbs.is_empty() {
        errors.push(Error::required(&path, "verbs must contain at least one value"));
    } else if verbs.contains(&"*") {
        if verbs.len() > 1 {
            let detail = "if '*' is present, must not specify other verbs";
            errors.push(Error::invalid(&path, member(rule, "verbs"), detail));
        }
    } else if !verbs.iter().all(|v| VERBS.contains(v)) {
        errors.push(Error::not_supported(&path, member(rule, "verbs"), VERBS));
    }
}

fn check_resource_rule(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    check_verbs(rule, path, errors);
    for (key, missing, what) in [
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ] {
        let values = rule.texts(key);
        if values.is_empty() {
            errors.push(Error::required(&path.child(key), missing));
        } else if values.len() > 1 && values.contains(&"*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.push(Error::invalid(&path.child(key), member(rule, key), detail));
        }
    }
    let (namespaces, path) = (rule.texts("namespaces"), path.child("namespaces"));
    if namespaces.is_empty() && !rule.flag("clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(Error::required(&path, detail));
    } else if namespaces.contains(&"*") {
        if namespaces.len() > 1 {
            let detail = "if '*' is present, must not specify other namespaces";
            errors.push(Error::invalid(&path, member(rule, "namespaces"), detail));
        }
    } else {
        for (i, namespace) in namespaces.into_iter().enumerate() {
            const INTRO: &str = "each member of this list must be '*' or a DNS-1123 label; ";
            let messages = name_is_dns_label(namespace, NameUse::Full).into_iter().map(|m| format!("{INTRO}{m}"));
            invalid_all(messages.collect(), &path.index(i), namespace, errors);
        }
    }
}

fn check_non_resource_rule(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    check_verbs(rule, path, errors);
    let (urls, path) = (rule.texts("nonResourceURLs"), path.child("nonResourceURLs"));
    if urls.is_empty() {
        errors.push(Error::required(&path, "nonResourceURLs must contain at least one value"));
    } else if urls.contains(&"*") {
        if urls.len() > 1 {
            let detail = "if '*' is present, must not specify other non-resource URLs";
            errors.push(Error::invalid(&path, member(rule, "nonResourceURLs"), detail));
        }
    } else {
        for (i, url) in urls.into_iter().enumerate() {
            if let Some(problem) = url_problem(url) {
                errors.push(Error::invalid(&path.index(i), url, problem));
            }
        }
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !url.ends_with("/*")) => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

fn priority_level(_: Request<'_>, level: &Value) -> ErrorList {
    let mut errors = meta(level, Namespacing::Forbidden, name_is_dns_subdomain);
    const PRESERVE_ZERO: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    if level.meta().annotation(PRESERVE_ZERO).is_some() {
        let detail = format!("annotation '{PRESERVE_ZERO}' is forbidden");
        errors.push(Error::forbidden(&Path::of(&["metadata", "annotations"]), detail));
    }
    let (spec, name) = (member(level, "spec"), level.meta().name());
    let kind = spec.text("type");
    if (name == "exempt") != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(Error::invalid(&SPEC.child("type"), BadValue::json(kind), detail));
    }
    match kind {
        "Exempt" => {
            if spec.has("limited") {
                errors.push(Error::forbidden(&SPEC.child("limited"), "must be nil if the type is not Limited"));
            }
            if let Some(exempt) = spec.some("exempt") {
                check_shares(exempt, &SPEC.child("exempt"), &mut errors);
                check_lendable(exempt, &SPEC.child("exempt"), &mut errors);
            }
        }
        "Limited" => {
            if spec.has("exempt") {
                errors.push(Error::forbidden(&SPEC.child("exempt"), "must be nil if the type is Limited"));
            }
            match spec.some("limited") {
                None => errors.push(Error::required(&SPEC.child("limited"), "must not be empty when type is Limited")),
                Some(limited) => check_limited(limited, &mut errors),
            }
        }
        "" => errors.push(Error::required(&SPEC.child("type"), "")),
        other => {
            let known = ["Exempt", "Limited"];
            errors.push(Error::not_supported(&SPEC.child("type"), BadValue::json(other), known));
        }
    }
    check_mandatory(name, spec, &mut errors);
    errors.extend(status(level));
    errors
}

/// The levels that the server cannot do without have a fixed form.
fn check_mandatory(name: &str, spec: &Value, errors: &mut ErrorList) {
    match name {
        "exempt" => {
            let others = spec.as_object().is_some_and(|s| s.keys().any(|k| !matches!(k, "type" | "exempt")));
            if spec.text("type") != "Exempt" || others {
                let detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value";
                let shown = internal::shown("PriorityLevelConfigurationSpec", Some(spec));
                errors.push(Error::invalid(&SPEC, shown, detail));
            }
        }
        "catch-all" => {
            let limited = member(spec, "limited");
            let fixed = spec.text("type") == "Limited"
                && limited.int("nominalConcurrencyShares") == Some(5)
                && limited.int("lendablePercent") == Some(0)
                && !limited.has("borrowingLimitPercent")
                && limited.str_at(&["limitResponse", "type"]) == "Reject"
                && !spec.has("exempt");
            if !fixed {
                let shown = internal::shown("PriorityLevelConfigurationSpec", Some(spec));
                errors.push(Error::invalid(&SPEC, shown, "spec of 'catch-all' must equal the fixed value"));
            }
        }
        _ => {}
    }
}

fn check_shares(level: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(shares) = level.int("nominalConcurrencyShares").filter(|s| *s < 0) {
        let path = path.child("nominalConcurrencyShares");
        errors.push(Error::invalid(&path, shares, "must be a non-negative integer"));
    }
}

fn check_lendable(level: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(percent) = level.int("lendablePercent").filter(|p| !(0..=100).contains(p)) {
        let detail = "must be between 0 and 100, inclusive";
        errors.push(Error::invalid(&path.child("lendablePercent"), percent, detail));
    }
}

fn check_limited(limited: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("limited");
    check_shares(limited, &path, errors);
    let response = member(limited, "limitResponse");
    let at = path.child("limitResponse");
    match response.text("type") {
        "Reject" => {
            if response.has("queuing") {
                errors.push(Error::forbidden(
                    &at.child("queuing"),
                    "must be nil if limited.limitResponse.type is not Limited",
                ));
            }
        }
        "Queue" => match response.some("queuing") {
            None => {
                errors.push(Error::required(
                    &at.child("queuing"),
                    "must not be empty if limited.limitResponse.type is Limited",
                ));
            }
            Some(queuing) => check_queuing(queuing, &at.child("queuing"), errors),
        },
        "" => errors.push(Error::required(&at.child("type"), "")),
        other => errors.push(Error::not_supported(&at.child("type"), BadValue::json(other), ["Queue", "Reject"])),
    }
    check_lendable(limited, &path, errors);
    if let Some(percent) = limited.int("borrowingLimitPercent").filter(|p| *p < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.push(Error::invalid(&path.child("borrowingLimitPercent"), percent, detail));
    }
}

fn check_queuing(queuing: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (limit, queues, hand) =
        (queuing.number("queueLengthLimit"), queuing.number("queues"), queuing.number("handSize"));
    if limit <= 0 {
        errors.push(Error::invalid(&path.child("queueLengthLimit"), limit, "must be positive"));
    }
    if queues <= 0 {
        errors.push(Error::invalid(&path.child("queues"), queues, "must be positive"));
    } else if queues > MAX_QUEUES {
        errors.push(Error::invalid(&path.child("queues"), queues, format!("must not be greater than {MAX_QUEUES}")));
    }
    let path = path.child("handSize");
    if hand <= 0 {
        errors.push(Error::invalid(&path, hand, "must be positive"));
    } else if hand > queues {
        errors.push(Error::invalid(&path, hand, format!("should not be greater than queues ({queues})")));
    } else if entropy_bits(queues, hand) > MAX_HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        errors.push(Error::invalid(&path, hand, detail));
    }
}

/// How much randomness dealing a hand takes.
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    (f64::log2(deck as f64) * hand as f64).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mandatory_schemas_keep_their_form() {
        for name in ["exempt", "catch-all"] {
            let mut schema = Value::from([("metadata", Value::from([("name", name)]))]);
            schema.set_at(&["spec"], mandatory_schema(name).unwrap());
            assert_eq!(flow_schema(&schema).len(), 0, "{name}");
            schema.set_at(&["spec", "priorityLevelConfiguration", "name"], "global-default".into());
            let errors = flow_schema(&schema);
            let want = format!("spec of '{name}' must equal the fixed value");
            assert!(errors.iter().any(|e| e.to_string().ends_with(&want)), "{name}");
        }
        assert!(mandatory_schema("probes").is_none());
    }
}
