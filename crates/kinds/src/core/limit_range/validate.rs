//! Limits that fit each other.

use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_meta::{Quantity, Value};
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, SPEC, bad_quantity, member, meta, quantity, quantity_text};
use kubelith_rules::resources::{container_resource_name, invalid_name, may_overcommit, resource_name};
use std::collections::BTreeSet;

pub const RULES: Rules = Rules { create: |_, range| limit_range(range), update: |_, new, _| limit_range(new) };

fn limit_range(range: &Value) -> ErrorList {
    let mut errors = meta(range, Namespacing::Required, name_is_dns_subdomain);
    let mut types = BTreeSet::new();
    for (i, limit) in member(range, "spec").list("limits").iter().enumerate() {
        let path = SPEC.item("limits", i);
        let kind = limit.text("type");
        let type_path = path.child("type");
        if !invalid_name(kind, &type_path, &mut errors)
            && !kind.contains('/')
            && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind)
        {
            let detail = "must be a standard limit type or fully qualified";
            errors.push(Error::invalid(&type_path, BadValue::json(kind), detail));
        }
        if !types.insert(kind) {
            errors.push(Error::duplicate(&type_path, BadValue::json(kind)));
        }
        check_limit(limit, kind, &path, &mut errors);
    }
    errors
}

fn check_limit(limit: &Value, kind: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let mut keys = BTreeSet::new();
    let is_pod = kind == "Pod";
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let path = path.child(field);
        if is_pod && field.starts_with("default") {
            if limit.map(field).is_some_and(|m| !m.is_empty()) {
                errors.push(Error::forbidden(&path, "may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        if field == "maxLimitRequestRatio" && kind == "PersistentVolumeClaim" {
            check_claim_limit(limit, &path, errors);
        }
        for (name, _) in limit.entries(field) {
            match kind {
                "Pod" | "Container" => container_resource_name(name, &path.key(name), errors),
                _ => resource_name(name, &path.key(name), errors),
            }
            keys.insert(name);
        }
    }
    for key in keys {
        check_amounts(limit, key, is_pod, path, errors);
    }
}

fn check_claim_limit(limit: &Value, ratio_path: &Path<'_>, errors: &mut ErrorList) {
    let bounded = ["min", "max"].iter().any(|f| limit.map(f).is_some_and(|m| m.contains_key("storage")));
    if !bounded {
        let text = ratio_path.to_string();
        let parent = text.trim_end_matches("maxLimitRequestRatio").trim_end_matches('.').to_owned();
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(Error::required(&Path::new(&parent).child("limits"), detail));
    }
}

fn check_amounts(limit: &Value, key: &str, is_pod: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let value = |field: &str| limit.map(field).and_then(|m| m.get(key));
    let of_container = |field: &str| if is_pod { None } else { value(field) };
    let (min, max, ratio) = (value("min"), value("max"), value("maxLimitRequestRatio"));
    let (default, request) = (of_container("default"), of_container("defaultRequest"));
    let mut greater = |a: Option<&Value>, b: Option<&Value>, field: &str, shown: Option<&Value>, what: (&str, &str)| {
        let (Some(a), Some(b)) = (a, b) else { return };
        if quantity(a) > quantity(b) {
            let detail = format!("{} {} is greater than {} {}", what.0, quantity_text(a), what.1, quantity_text(b));
            let shown = shown.map_or(BadValue::Omitted, bad_quantity);
            errors.push(Error::invalid(&path.child(field).key(key), shown, detail));
        }
    };
    greater(min, max, "min", min, ("min value", "max value"));
    greater(min, request, "defaultRequest", request, ("min value", "default request value"));
    greater(request, max, "defaultRequest", request, ("default request value", "max value"));
    greater(request, default, "defaultRequest", request, ("default request value", "default limit value"));
    greater(min, default, "default", min, ("min value", "default value"));
    greater(default, max, "default", max, ("default value", "max value"));
    if let Some(ratio) = ratio {
        check_ratio(ratio, min, max, &path.child("maxLimitRequestRatio").key(key), errors);
    }
    if let (Some(default), Some(request), false) = (default, request, may_overcommit(key))
        && quantity(default) != quantity(request)
    {
        let detail = format!(
            "default value {} must equal to defaultRequest value {} in {key}",
            quantity_text(default),
            quantity_text(request)
        );
        errors.push(Error::invalid(&path.child("defaultRequest").key(key), bad_quantity(request), detail));
    }
}

fn check_ratio(ratio: &Value, min: Option<&Value>, max: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(wanted) = quantity(ratio) else { return };
    let text = quantity_text(ratio);
    if wanted.milli_value() < 1000 {
        errors.push(Error::invalid(path, bad_quantity(ratio), format!("ratio {text} is less than 1")));
    }
    let (Some(min), Some(max)) = (min.and_then(quantity), max.and_then(quantity)) else { return };
    const MAX_MILLI: i64 = i64::MAX / 1000;
    let fits = |q: &Quantity| q.value() < MAX_MILLI;
    let (wanted, limit) = if fits(&wanted) && fits(&min) && fits(&max) {
        (wanted.milli_value() as f64 / 1000.0, max.milli_value() as f64 / min.milli_value() as f64)
    } else {
        (wanted.value() as f64, max.value() as f64 / min.value() as f64)
    };
    if wanted > limit {
        let detail = format!("ratio {text} is greater than max/min = {limit:.6}");
        errors.push(Error::invalid(path, bad_quantity(ratio), detail));
    }
}
