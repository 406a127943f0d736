//! When a job has failed, and when it has succeeded.

use crate::batch::job::indexes;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_rules::common::{Fields, member, not_negative, qualified_name, supported};
use std::collections::BTreeSet;

const MAX_RULES: usize = 20;

const MAX_CONDITIONS: usize = 20;

const MAX_CODES: usize = 255;

const MAX_INDEXES_TEXT: usize = 64 * 1024;

fn required_one_of(value: &str, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if value.is_empty() {
        let quoted: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
        errors.push(Error::required(path, format!("valid values: [{}]", quoted.join(" "))));
    } else {
        supported(value, known, path, errors);
    }
}

pub fn check_failure(policy: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let rules = policy.list("rules");
    if rules.len() > MAX_RULES {
        errors.push(Error::too_many(&path.child("rules"), rules.len(), MAX_RULES));
    }
    let pod = spec.at(&["template", "spec"]).unwrap_or(&Value::Null);
    let containers = ["containers", "initContainers"].into_iter().flat_map(|key| pod.list(key));
    let containers: Vec<&str> = containers.map(|c| c.text("name")).collect();
    for (i, rule) in rules.iter().enumerate() {
        let path = path.item("rules", i);
        let action = rule.text("action");
        if action == "FailIndex" {
            if !spec.has("backoffLimitPerIndex") {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.push(Error::invalid(&path.child("action"), BadValue::json(action), detail));
            }
        } else {
            required_one_of(action, &["Count", "FailIndex", "FailJob", "Ignore"], &path.child("action"), errors);
        }
        let (codes, conditions) = (rule.some("onExitCodes"), rule.list("onPodConditions"));
        if let Some(codes) = codes {
            check_codes(codes, &containers, &path.child("onExitCodes"), errors);
        }
        if conditions.len() > MAX_CONDITIONS {
            errors.push(Error::too_many(&path.child("onPodConditions"), conditions.len(), MAX_CONDITIONS));
        }
        for (j, pattern) in conditions.iter().enumerate() {
            let path = path.item("onPodConditions", j);
            qualified_name(pattern.text("type"), &path.child("type"), errors);
            required_one_of(pattern.text("status"), &["False", "True", "Unknown"], &path.child("status"), errors);
        }
        match (codes.is_some(), conditions.is_empty()) {
            (true, false) => {
                let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
                errors.push(Error::invalid(&path, BadValue::Omitted, detail));
            }
            (false, true) => {
                let detail = "specifying one of OnExitCodes and OnPodConditions is required";
                errors.push(Error::invalid(&path, BadValue::Omitted, detail));
            }
            _ => {}
        }
    }
}

fn check_codes(codes: &Value, containers: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    required_one_of(codes.text("operator"), &["In", "NotIn"], &path.child("operator"), errors);
    if let Some(name) = codes.some("containerName").and_then(Value::as_str).filter(|n| !containers.contains(n)) {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(Error::invalid(&path.child("containerName"), name, detail));
    }
    let values: Vec<i64> = codes.list("values").iter().filter_map(Value::as_i64).collect();
    let path = path.child("values");
    if values.is_empty() {
        let shown = codes.some("values").map_or(BadValue::text("null"), BadValue::from);
        errors.push(Error::invalid(&path, shown, "at least one value is required"));
    } else if values.len() > MAX_CODES {
        errors.push(Error::too_many(&path, values.len(), MAX_CODES));
    }
    let mut seen = BTreeSet::new();
    for (i, code) in values.iter().enumerate() {
        if *code == 0 && codes.text("operator") == "In" {
            errors.push(Error::invalid(&path.index(i), 0, "must not be 0 for the In operator"));
        }
        if !seen.insert(*code) {
            errors.push(Error::duplicate(&path.index(i), *code));
        }
    }
    if !values.is_sorted() {
        errors.push(Error::invalid(&path, member(codes, "values"), "must be ordered"));
    }
}

pub fn check_success(policy: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let rules = policy.list("rules");
    let list = path.child("rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(Error::required(&list, detail));
    }
    if rules.len() > MAX_RULES {
        errors.push(Error::too_many(&list, rules.len(), MAX_RULES));
    }
    let Some(completions) = spec.int("completions") else { return };
    for (i, rule) in rules.iter().enumerate() {
        let path = list.index(i);
        let (count, indexes) = (rule.int("succeededCount"), rule.some("succeededIndexes").and_then(Value::as_str));
        if count.is_none() && indexes.is_none() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(Error::required(&path, detail));
        }
        let mut total = 0;
        if let Some(text) = indexes {
            let path = path.child("succeededIndexes");
            if text.len() > MAX_INDEXES_TEXT {
                errors.push(Error::too_long(&path, MAX_INDEXES_TEXT));
            }
            match indexes::count(text, completions) {
                Ok(number) => total = number,
                Err(why) => {
                    errors.push(Error::invalid(&path, text, format!("error parsing succeededIndexes: {why}")));
                }
            }
        }
        let Some(count) = count else { continue };
        let path = path.child("succeededCount");
        not_negative(count, &path, errors);
        if count > completions {
            let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.push(Error::invalid(&path, count, detail));
        }
        if indexes.is_some() && count > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.push(Error::invalid(&path, count, detail));
        }
    }
}
