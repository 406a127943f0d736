//! Which nodes a pod wants, bears and spreads over.

use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_label_value, name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::selector::validate_label_name;
use kubelith_meta::{Value, members};
use kubelith_rules::Env;
use kubelith_rules::common::{Fields, invalid_all, label_selector, name_full, positive, supported};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Whether values of node labels are checked: those of preferences are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    Checked,
    Unchecked,
}

pub fn check_affinity(affinity: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(nodes) = affinity.some("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = nodes.some(REQUIRED) {
            node_selector(selector, &path.child(REQUIRED), errors);
        }
        for (i, term) in nodes.list(PREFERRED).iter().enumerate() {
            let path = path.item(PREFERRED, i);
            check_weight(term, &path, errors);
            if let Some(preference) = term.some("preference") {
                check_node_term(preference, Values::Unchecked, &path.child("preference"), errors);
            }
        }
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.some(key) else { continue };
        let path = path.child(key);
        for (i, term) in pods.list(REQUIRED).iter().enumerate() {
            check_pod_term(term, &path.item(REQUIRED, i), errors);
        }
        for (i, term) in pods.list(PREFERRED).iter().enumerate() {
            let path = path.item(PREFERRED, i);
            check_weight(term, &path, errors);
            let term = kubelith_rules::common::member(term, "podAffinityTerm");
            check_pod_term(term, &path.child("podAffinityTerm"), errors);
        }
    }
}

fn check_weight(term: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let weight = term.number("weight");
    if !(1..=100).contains(&weight) {
        errors.push(Error::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

pub fn node_selector(selector: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("nodeSelectorTerms");
    let terms = selector.list("nodeSelectorTerms");
    if terms.is_empty() {
        return errors.push(Error::required(&path, "must have at least one node selector term"));
    }
    for (i, term) in terms.iter().enumerate() {
        check_node_term(term, Values::Checked, &path.index(i), errors);
    }
}

fn check_node_term(term: &Value, values: Values, path: &Path<'_>, errors: &mut ErrorList) {
    for (i, requirement) in term.list("matchExpressions").iter().enumerate() {
        check_node_requirement(requirement, values, &path.item("matchExpressions", i), errors);
    }
    for (i, requirement) in term.list("matchFields").iter().enumerate() {
        check_field_requirement(requirement, &path.item("matchFields", i), errors);
    }
}

fn check_node_requirement(requirement: &Value, values: Values, path: &Path<'_>, errors: &mut ErrorList) {
    let (operator, list) = (requirement.text("operator"), requirement.texts("values"));
    let at = path.child("values");
    match operator {
        "In" | "NotIn" if list.is_empty() => {
            errors.push(Error::required(&at, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !list.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(&at, detail));
        }
        "Gt" | "Lt" if list.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(Error::required(&at, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => {
            let detail = "not a valid selector operator";
            errors.push(Error::invalid(&path.child("operator"), BadValue::json(operator), detail));
        }
    }
    errors.extend(validate_label_name(requirement.text("key"), &path.child("key")));
    if values == Values::Checked {
        for (i, value) in list.into_iter().enumerate() {
            invalid_all(is_label_value(value), &at.index(i), value, errors);
        }
    }
}

fn check_field_requirement(requirement: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (operator, values) = (requirement.text("operator"), requirement.texts("values"));
    if !["In", "NotIn"].contains(&operator) {
        let detail = "not a valid selector operator";
        errors.push(Error::invalid(&path.child("operator"), BadValue::json(operator), detail));
    } else if values.len() != 1 {
        let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(Error::required(&path.child("values"), detail));
    }
    let key = requirement.text("key");
    if key == "metadata.name" {
        for (i, value) in values.into_iter().enumerate() {
            name_full(name_is_dns_subdomain, value, &path.item("values", i), errors);
        }
    } else {
        errors.push(Error::invalid(&path.child("key"), key, "not a valid field selector key"));
    }
}

fn check_pod_term(term: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["labelSelector", "namespaceSelector"] {
        label_selector(term.get(key), &path.child(key), errors);
    }
    for namespace in term.texts("namespaces") {
        name_full(name_is_dns_label, namespace, &path.child("namespace"), errors);
    }
    check_label_keys(term, path, errors);
    let key = term.text("topologyKey");
    if key.is_empty() {
        errors.push(Error::required(&path.child("topologyKey"), "can not be empty"));
    }
    errors.extend(validate_label_name(key, &path.child("topologyKey")));
}

fn check_label_keys(term: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let selector = term.some("labelSelector");
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = term.texts(list);
        if keys.is_empty() {
            continue;
        }
        if selector.is_none() {
            let detail = "must not be specified when labelSelector is not set";
            errors.push(Error::forbidden(&path.child(list), detail));
            continue;
        }
        for (i, key) in keys.into_iter().enumerate() {
            errors.extend(validate_label_name(key, &path.item(list, i)));
        }
    }
    let matched = term.texts("matchLabelKeys");
    if let Some(selector) = selector.filter(|_| !matched.is_empty()) {
        let mut seen: Vec<&str> = selector.entries("matchLabels").map(|(key, _)| key).collect();
        for key in selector.list("matchExpressions").iter().map(|expression| expression.text("key")) {
            if let Some(i) = matched.iter().rposition(|matched| *matched == key).filter(|_| seen.contains(&key)) {
                // The reference leaves out the list.
                errors.push(Error::invalid(&path.index(i), key, "exists in both matchLabelKeys and labelSelector"));
            }
            seen.push(key);
        }
    }
    for (i, key) in matched.iter().enumerate() {
        if term.texts("mismatchLabelKeys").contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(Error::invalid(&path.item("matchLabelKeys", i), *key, detail));
        }
    }
}

pub fn check_spread(env: &Env, constraints: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, constraint) in constraints.iter().enumerate() {
        let path = path.index(i);
        positive(constraint.number("maxSkew"), &path.child("maxSkew"), errors);
        let (key, action) = (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(Error::required(&path.child("topologyKey"), "can not be empty"));
        }
        supported(action, &["DoNotSchedule", "ScheduleAnyway"], &path.child("whenUnsatisfiable"), errors);
        let repeats = |other: &Value| other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action;
        if constraints[i + 1..].iter().any(repeats) {
            let at = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(Error::duplicate(&at, format!("{{{key}, {action}}}")));
        }
        if let Some(count) = constraint.int("minDomains") {
            let path = path.child("minDomains");
            positive(count, &path, errors);
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(Error::invalid(&path, count, detail));
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = constraint.some(key).and_then(Value::as_str) {
                supported(policy, &["Honor", "Ignore"], &path.child(key), errors);
            }
        }
        if env.features.spread_labels && env.features.follows_spread_labels {
            check_label_keys(constraint, &path, errors);
        } else {
            check_spread_keys(constraint, &path.child("matchLabelKeys"), errors);
        }
        label_selector(constraint.get("labelSelector"), &path.child("labelSelector"), errors);
    }
}

/// Keys whose values the selector of a constraint does not get from the pod, so that it may not name them itself.
fn check_spread_keys(constraint: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let keys = constraint.texts("matchLabelKeys");
    if keys.is_empty() {
        return;
    }
    let Some(selector) = constraint.some("labelSelector") else {
        errors.push(Error::forbidden(path, "must not be specified when labelSelector is not set"));
        for (i, key) in keys.into_iter().enumerate() {
            errors.extend(validate_label_name(key, &path.index(i)));
        }
        return;
    };
    let expressions = selector.list("matchExpressions").iter().map(|expression| expression.text("key"));
    let known: Vec<&str> = selector.entries("matchLabels").map(|(key, _)| key).chain(expressions).collect();
    for (i, key) in keys.into_iter().enumerate() {
        errors.extend(validate_label_name(key, &path.index(i)));
        if known.contains(&key) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(Error::invalid(&path.index(i), key, detail));
        }
    }
}

pub fn tolerations(env: &Env, tolerations: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, toleration) in tolerations.iter().enumerate() {
        let path = path.index(i);
        members!(toleration =>
            key: "key",
            operator: "operator",
            value: "value",
            effect: "effect",
            seconds: "tolerationSeconds",
        );
        let (key, operator) = (key.or_empty(), operator.or_empty());
        let (value, effect) = (value.or_empty(), effect.or_empty());
        if !key.is_empty() {
            errors.extend(validate_label_name(key, &path.child("key")));
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(Error::invalid(&path.child("operator"), BadValue::json(operator), detail));
        }
        if !seconds.is_null() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(Error::invalid(&path.child("effect"), BadValue::json(effect), detail));
        }
        let operator_path = path.child("operator");
        match operator {
            "Equal" | "" => {
                let messages = is_label_value(value);
                if !messages.is_empty() {
                    errors.push(Error::invalid(&operator_path, value, messages.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(Error::invalid(&operator_path, value, detail));
            }
            "Exists" => {}
            "Lt" | "Gt" if env.features.comparing_tolerations => check_number(value, &path.child("value"), errors),
            // The message knows of operators that are off.
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(Error::not_supported(&operator_path, BadValue::json(operator), known));
            }
            _ => supported(operator, &["Equal", "Exists"], &operator_path, errors),
        }
        if !effect.is_empty() {
            taint_effect(effect, &path.child("effect"), errors);
        }
    }
}

/// A number as people write it, to compare with.
fn check_number(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if value.is_empty() {
        errors.push(Error::invalid(path, value, "must be non-empty"));
    } else if !is_plain || (digits.starts_with('0') && value != "0") {
        errors.push(Error::invalid(path, value, "must be a valid decimal integer in canonical form"));
    }
    if value.parse::<i64>().is_err() {
        let why = if is_plain { "value out of range" } else { "invalid syntax" };
        let detail = format!("strconv.ParseInt: parsing {}: {why}", kubelith_meta::text::quote(value));
        errors.push(Error::invalid(path, value, detail));
    }
}

pub fn taint_effect(effect: &str, path: &Path<'_>, errors: &mut ErrorList) {
    supported(effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"], path, errors);
}
