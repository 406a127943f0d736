//! What kinds of this group share.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_c_identifier, is_label_value, is_qualified_name};
use kubelith_rules::common::{Fields, dns_subdomain, invalid_all, one_of};
use kubelith_rules::internal;
use kubelith_rules::values::driver_name;

const MAX_POOL_NAME: usize = 253;

const MAX_IDENTIFIER: usize = 32;

const MAX_BINDING_CONDITIONS: usize = 4;

pub const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

pub fn unchanged_spec(form: &str, new: &Value, old: &Value, errors: &mut ErrorList) {
    internal::immutable(form, new.get("spec"), old.get("spec"), &Path::new("spec"), errors);
}

/// Every item of a list, unless it is too long to look at.
pub fn each(
    list: &[Value],
    max: usize,
    path: &Path<'_>,
    errors: &mut ErrorList,
    mut item: impl FnMut(&Value, &Path<'_>, &mut ErrorList),
) -> bool {
    if list.len() > max {
        errors.push(Error::too_many(path, list.len(), max));
        return false;
    }
    for (i, value) in list.iter().enumerate() {
        item(value, &path.index(i), errors);
    }
    true
}

/// As `each`, and no two items have the same key.
pub fn each_once<K: AsRef<str>>(
    list: &[Value],
    max: usize,
    path: &Path<'_>,
    errors: &mut ErrorList,
    key: impl Fn(&Value) -> K,
    item: impl FnMut(&Value, &Path<'_>, &mut ErrorList),
) {
    if !each(list, max, path, errors, item) {
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for (i, value) in list.iter().enumerate() {
        let key = key(value).as_ref().to_owned();
        if seen.contains(&key) {
            errors.push(Error::duplicate(&path.index(i), key));
        } else {
            seen.insert(key);
        }
    }
}

pub fn pool_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if name.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    if name.len() > MAX_POOL_NAME {
        errors.push(Error::too_long(path, MAX_POOL_NAME));
    }
    for part in name.split('/') {
        dns_subdomain(part, path, errors);
    }
}

/// A name within a domain: that of the driver, where none is given.
pub fn attribute_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let identifier = |name: &str, errors: &mut ErrorList| {
        if name.len() > MAX_IDENTIFIER {
            errors.push(Error::too_long(path, MAX_IDENTIFIER));
        }
        invalid_all(is_c_identifier(name), path, name, errors);
    };
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [name] => identifier(name, errors),
        [domain, name] => {
            if domain.is_empty() {
                errors.push(Error::invalid(path, "", "the domain must not be empty"));
            } else {
                driver_name(domain, path, errors);
            }
            if name.is_empty() {
                errors.push(Error::invalid(path, "", "the name must not be empty"));
            } else {
                identifier(name, errors);
            }
        }
        // The reference takes names with more slashes for good.
        _ => {}
    }
}

pub fn taint(taint: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    invalid_all(is_qualified_name(taint.text("key")), &path.child("key"), taint.text("key"), errors);
    if !taint.text("value").is_empty() {
        invalid_all(is_label_value(taint.text("value")), &path.child("value"), taint.text("value"), errors);
    }
    let effect = taint.text("effect");
    if old.is_none_or(|old| old.text("effect") != effect) {
        one_of(effect, &EFFECTS, &path.child("effect"), errors);
    }
}

/// What must hold before a device is used, and what must not: the two come together.
pub fn binding_conditions(owner: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const LISTS: [&str; 2] = ["bindingConditions", "bindingFailureConditions"];
    let [good, bad] = LISTS.map(|list| owner.texts(list));
    for list in LISTS {
        each(owner.list(list), MAX_BINDING_CONDITIONS, &path.child(list), errors, |name, path, errors| {
            let name = name.as_str().unwrap_or_default();
            invalid_all(is_qualified_name(name), path, name, errors);
        });
    }
    for (i, condition) in good.iter().enumerate().filter(|(i, c)| good[..*i].contains(c)) {
        errors.push(Error::duplicate(&path.item(LISTS[0], i), *condition));
    }
    for (i, condition) in bad.iter().enumerate() {
        let path = path.item(LISTS[1], i);
        if bad[..i].contains(condition) {
            errors.push(Error::duplicate(&path, *condition));
        }
        if good.contains(condition) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.push(Error::invalid(&path, *condition, detail));
        }
    }
    for (own, other) in [(0, 1), (1, 0)] {
        let [empty, given] = [own, other].map(|i| owner.list(LISTS[i]));
        if empty.is_empty() && !given.is_empty() {
            let detail = format!("{} are required to use {}", LISTS[own], LISTS[other]);
            let shown = internal::shown("[]string", owner.get(LISTS[own]));
            errors.push(Error::invalid(&path.child(LISTS[own]), shown, detail));
        }
    }
}
