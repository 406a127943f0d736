//! Rules, subjects and precedence.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, invalid_all, member, meta, name_full};
use kubelith_rules::{Rules, internal};
use std::collections::BTreeSet;

pub const RULES: Rules = Rules {
    create: |_, schema| flow_schema(schema),
    update: |request, new, _| match request.subresource {
        "status" => status(new),
        _ => flow_schema(new),
    },
};

const MAX_PRECEDENCE: i64 = 10_000;

const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub fn flow_schema(schema: &Value) -> ErrorList {
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
pub fn mandatory_schema(name: &str) -> Option<Value> {
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

/// Conditions have types, each once.
pub fn status(object: &Value) -> ErrorList {
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
