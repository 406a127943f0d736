//! Devices, their attributes, capacities and counters.

use crate::resource::shared::{attribute_name, binding_conditions, each, each_once, pool_name, taint};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_meta::quantity::Quantity;
use kubelith_pods::validate::node_selector;
use kubelith_rules::common::{
    Fields, IMMUTABLE, SPEC, dns_label, immutable_member, member, meta, meta_update, name_full, quantity, quantity_text,
};
use kubelith_rules::semver::Version;
use kubelith_rules::values::driver_name;
use kubelith_rules::{Rules, internal};

pub const RULES: Rules = Rules {
    create: |_, slice| {
        let mut errors = meta(slice, Namespacing::Forbidden, name_is_dns_subdomain);
        check(slice, None, &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        check(new, Some(old), &mut errors);
        errors
    },
};

const MAX_DEVICES: usize = 128;

/// Of devices that have more to say.
const MAX_RICH_DEVICES: usize = 64;

const MAX_COUNTER_SETS: usize = 8;

const MAX_COUNTERS: usize = 32;

const MAX_COUNTER_CONSUMPTIONS: usize = 2;

const MAX_ATTRIBUTES: usize = 32;

const MAX_ATTRIBUTE_VALUES: usize = 48;

const MAX_ATTRIBUTE_LENGTH: usize = 64;

/// A domain, a slash and a name.
const MAX_ATTRIBUTE_KEY: usize = 63 + 1 + 32;

const MAX_TAINTS: usize = 16;

const MAX_OPTIONS: usize = 10;

const LISTS_OF_VALUES: [&str; 4] = ["bools", "ints", "strings", "versions"];

pub fn check(slice: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let spec = member(slice, "spec");
    let before = old.map(|old| member(old, "spec"));
    driver_name(spec.text("driver"), &SPEC.child("driver"), errors);
    check_pool(member(spec, "pool"), &SPEC.child("pool"), errors);
    if let Some(before) = before {
        let pool = SPEC.child("pool");
        immutable_member(member(spec, "pool"), member(before, "pool"), "name", &pool, errors);
        immutable_member(spec, before, "driver", &SPEC, errors);
        if spec.some("nodeName") != before.some("nodeName") {
            let shown = internal::shown("*string", spec.get("nodeName"));
            errors.push(Error::invalid(&SPEC.child("nodeName"), shown, IMMUTABLE));
        }
    }
    check_nodes(spec, errors);
    if spec.has("sharedCounters") && spec.has("devices") {
        errors.push(Error::invalid(&SPEC, "", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let devices = spec.list("devices");
    let is_rich = |device: &Value| {
        let has_lists = |(_, a): (&str, &Value)| LISTS_OF_VALUES.iter().any(|key| a.has(key));
        !device.list("taints").is_empty()
            || !device.list("consumesCounters").is_empty()
            || device.entries("attributes").any(has_lists)
    };
    let max = if devices.iter().any(is_rich) { MAX_RICH_DEVICES } else { MAX_DEVICES };
    let name = |device: &Value| device.text("name").to_owned();
    let selects_each = spec.flag("perDeviceNodeSelection");
    each_once(devices, max, &SPEC.child("devices"), errors, name, |device, path, errors| {
        let known = before.map_or(&[][..], |spec| spec.list("devices"));
        let old = known.iter().find(|old| old.text("name") == device.text("name"));
        check_device(device, old, path, errors);
        check_device_nodes(device, selects_each, path, errors);
        binding_conditions(device, path, errors);
        check_mappings(device, &path.child("nodeAllocatableResourceMappings"), errors);
    });
    let sets = SPEC.child("sharedCounters");
    each_once(spec.list("sharedCounters"), MAX_COUNTER_SETS, &sets, errors, name, |set, path, errors| {
        check_counters(set, "name", path, errors);
    });
}

fn check_pool(pool: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    pool_name(pool.text("name"), &path.child("name"), errors);
    if pool.number("resourceSliceCount") <= 0 {
        let count = pool.number("resourceSliceCount");
        errors.push(Error::invalid(&path.child("resourceSliceCount"), count, "must be greater than zero"));
    }
    if pool.number("generation") < 0 {
        let detail = "must be greater than or equal to zero";
        errors.push(Error::invalid(&path.child("generation"), pool.number("generation"), detail));
    }
}

/// Where the devices can be reached: said in one way.
fn check_nodes(spec: &Value, errors: &mut ErrorList) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut ways = Vec::new();
    if let Some(name) = spec.some("nodeName").and_then(Value::as_str) {
        let path = SPEC.child("nodeName");
        if name.is_empty() {
            errors.push(Error::invalid(&path, name, "must be either unset or set to a non-empty string"));
        } else {
            ways.push("`nodeName`");
            name_full(name_is_dns_subdomain, name, &path, errors);
        }
    }
    if let Some(selector) = spec.some("nodeSelector") {
        ways.push("`nodeSelector`");
        node_selector(selector, &SPEC.child("nodeSelector"), errors);
        if selector.list("nodeSelectorTerms").len() != 1 {
            let shown = internal::shown("[]NodeSelectorTerm", selector.get("nodeSelectorTerms"));
            let path = SPEC.children(&["nodeSelector", "nodeSelectorTerms"]);
            errors.push(Error::invalid(&path, shown, "must have exactly one node selector term"));
        }
    }
    for (key, way) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")] {
        match spec.some(key).and_then(Value::as_bool) {
            Some(true) => ways.push(way),
            Some(false) => errors.push(Error::invalid(&SPEC.child(key), false, "must be either unset or set to true")),
            None => {}
        }
    }
    match ways.len() {
        0 => errors.push(Error::required(&SPEC, ONE)),
        1 => {}
        _ => {
            let detail = format!("{ONE}, but multiple fields are set");
            errors.push(Error::invalid(&SPEC, format!("{{{}}}", ways.join(", ")), detail));
        }
    }
}

fn check_device_nodes(device: &Value, selects_each: bool, path: &Path<'_>, errors: &mut ErrorList) {
    const KEYS: [&str; 3] = ["nodeName", "nodeSelector", "allNodes"];
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if !selects_each {
        if KEYS.iter().any(|key| device.has(key)) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set \
                          to true in the ResourceSlice spec";
            errors.push(Error::invalid(path, BadValue::text("null"), detail));
        }
        return;
    }
    let mut ways = Vec::new();
    if let Some(name) = device.some("nodeName").and_then(Value::as_str) {
        if name.is_empty() {
            errors.push(Error::invalid(&path.child("nodeName"), name, "must not be empty"));
        } else {
            ways.push("`nodeName`");
            name_full(name_is_dns_subdomain, name, &path.child("nodeName"), errors);
        }
    }
    if let Some(selector) = device.some("nodeSelector") {
        ways.push("`nodeSelector`");
        node_selector(selector, &path.child("nodeSelector"), errors);
    }
    match device.some("allNodes").and_then(Value::as_bool) {
        Some(true) => ways.push("`allNodes`"),
        Some(false) => {
            errors.push(Error::invalid(&path.child("allNodes"), false, "must be either unset or set to true"));
        }
        None => {}
    }
    match ways.len() {
        0 => errors.push(Error::required(path, ONE)),
        1 => {}
        _ => errors.push(Error::invalid(path, format!("{{{}}}", ways.join(", ")), ONE)),
    }
}

fn check_device(device: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    dns_label(device.text("name"), &path.child("name"), errors);
    let total = device.entries("attributes").count() + device.entries("capacity").count();
    if total > MAX_ATTRIBUTES {
        let detail = format!("the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}");
        errors.push(Error::invalid(path, i64::try_from(total).unwrap_or(i64::MAX), detail));
    }
    let values = |attribute: &Value| LISTS_OF_VALUES.iter().map(|key| attribute.list(key).len()).sum::<usize>().max(1);
    let total: usize = device.entries("attributes").map(|(_, attribute)| values(attribute)).sum();
    if total > MAX_ATTRIBUTE_VALUES {
        let detail = format!("the total number of attribute values must not exceed {MAX_ATTRIBUTE_VALUES}");
        errors.push(Error::invalid(path, i64::try_from(total).unwrap_or(i64::MAX), detail));
    }
    let at = path.child("attributes");
    for (key, attribute) in device.entries("attributes") {
        attribute_name(key, &at, errors);
        check_attribute(attribute, &at.key(&shortened(key, MAX_ATTRIBUTE_KEY)), errors);
    }
    let at = path.child("capacity");
    for (key, capacity) in device.entries("capacity") {
        attribute_name(key, &at, errors);
        let key = shortened(key, MAX_ATTRIBUTE_KEY);
        let (policy, at) = (capacity.some("requestPolicy"), at.key(&key));
        let Some(policy) = policy else { continue };
        let at = at.child("requestPolicy");
        if device.flag("allowMultipleAllocations") {
            check_policy(policy, member(capacity, "value"), &at, errors);
        } else {
            errors.push(Error::forbidden(&at, "allowMultipleAllocations must be true"));
        }
    }
    if !old.is_some_and(|old| internal::same("[]DeviceTaint", old.get("taints"), device.get("taints"))) {
        each(device.list("taints"), MAX_TAINTS, &path.child("taints"), errors, |one, path, errors| {
            taint(one, None, path, errors);
        });
    }
    let set = |consumption: &Value| consumption.text("counterSet").to_owned();
    let (list, at) = (device.list("consumesCounters"), path.child("consumesCounters"));
    each_once(list, MAX_COUNTER_CONSUMPTIONS, &at, errors, set, |consumption, path, errors| {
        check_counters(consumption, "counterSet", path, errors);
    });
}

fn check_counters(set: &Value, name_key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if set.text(name_key).is_empty() {
        errors.push(Error::required(&path.child(name_key), ""));
    } else {
        dns_label(set.text(name_key), &path.child(name_key), errors);
    }
    let (count, path) = (set.entries("counters").count(), path.child("counters"));
    if count == 0 {
        errors.push(Error::required(&path, ""));
    } else if count > MAX_COUNTERS {
        errors.push(Error::too_many(&path, count, MAX_COUNTERS));
    } else {
        set.entries("counters").for_each(|(name, _)| dns_label(name, &path, errors));
    }
}

fn check_attribute(attribute: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let check_text = |text: &str, path: &Path<'_>, errors: &mut ErrorList| {
        if text.len() > MAX_ATTRIBUTE_LENGTH {
            errors.push(Error::too_long(path, MAX_ATTRIBUTE_LENGTH));
        }
    };
    let check_version = |text: &str, path: &Path<'_>, errors: &mut ErrorList| {
        if !is_semantic_version(text) {
            errors.push(Error::invalid(path, text, "must be a string compatible with semver.org spec 2.0.0"));
        }
        check_text(text, path, errors);
    };
    let mut count = ["bool", "int"].iter().filter(|key| attribute.has(key)).count();
    if let Some(text) = attribute.some("string").and_then(Value::as_str) {
        count += 1;
        check_text(text, &path.child("string"), errors);
    }
    if let Some(text) = attribute.some("version").and_then(Value::as_str) {
        count += 1;
        check_version(text, &path.child("version"), errors);
    }
    for key in LISTS_OF_VALUES.into_iter().filter(|key| attribute.has(key)) {
        count += 1;
        if attribute.list(key).is_empty() {
            let shown = member(attribute, key);
            errors.push(Error::invalid(&path.child(key), shown, "must not be empty if specified"));
        }
        for (i, text) in attribute.texts(key).into_iter().enumerate() {
            match key {
                "strings" => check_text(text, &path.item(key, i), errors),
                "versions" => check_version(text, &path.item(key, i), errors),
                _ => {}
            }
        }
    }
    match count {
        0 => errors.push(Error::invalid(path, "", "exactly one value must be specified")),
        1 => {}
        _ => {
            let shown = internal::shown("DeviceAttribute", Some(attribute));
            errors.push(Error::invalid(path, shown, "exactly one value must be specified"));
        }
    }
}

fn is_semantic_version(text: &str) -> bool {
    Version::parse(text).is_some()
}

/// What may be asked of a capacity that users share.
fn check_policy(policy: &Value, capacity: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (values, range) = (policy.list("validValues"), policy.some("validRange"));
    let key = match (values.is_empty(), range) {
        (false, Some(_)) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            return errors.push(Error::forbidden(path, detail));
        }
        (false, None) => "validValues",
        (true, Some(_)) => "validRange",
        (true, None) => return,
    };
    let Some(default) = policy.some("default") else {
        return errors.push(Error::required(&path.child("default"), format!("required when {key} is defined")));
    };
    match range {
        None => check_values(values, default, capacity, &path.child(key), errors),
        Some(range) => check_range(range, default, capacity, &path.child(key), errors),
    }
}

fn amount(value: &Value) -> Quantity {
    quantity(value).unwrap_or_default()
}

fn check_values(values: &[Value], default: &Value, capacity: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (i, pair) in values.windows(2).enumerate() {
        if amount(&pair[0]) > amount(&pair[1]) {
            let detail = "values must be sorted in ascending order";
            errors.push(Error::invalid(&path.index(i + 1), quantity_text(&pair[1]), detail));
        }
    }
    let mut has_default = false;
    let number = |value: &Value| amount(value).value().to_string();
    each_once(values, MAX_OPTIONS, path, errors, number, |value, path, errors| {
        if amount(value) > amount(capacity) {
            let detail = format!("option is larger than capacity value: {}", quantity_text(capacity));
            errors.push(Error::invalid(path, quantity_text(value), detail));
        }
        has_default |= amount(value) == amount(default);
    });
    if !has_default {
        let detail = "default value is not valid according to the requestPolicy";
        errors.push(Error::invalid(path, quantity_text(default), detail));
    }
}

fn check_range(range: &Value, default: &Value, capacity: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(min) = range.some("min") else {
        return errors.push(Error::required(&path.child("min"), "required when validRange is defined"));
    };
    let text = quantity_text;
    let mut refuse = |key: &str, shown: &Value, detail: String| {
        errors.push(Error::invalid(&path.child(key), text(shown), detail));
    };
    let (min_amount, default_amount, all) = (amount(min), amount(default), amount(capacity));
    if min_amount > all {
        refuse("min", min, format!("min is larger than capacity value: {}", text(capacity)));
    }
    if default_amount < min_amount {
        refuse("min", default, format!("default is less than min: {}", text(min)));
    }
    let max = range.some("max");
    if let Some(max) = max {
        if min_amount > amount(max) {
            refuse("max", min, format!("min is larger than max: {}", text(max)));
        }
        if amount(max) > all {
            refuse("max", max, format!("max is larger than capacity value: {}", text(capacity)));
        }
        if default_amount > amount(max) {
            refuse("max", default, format!("default is more than max: {}", text(max)));
        }
    }
    let Some(step) = range.some("step") else { return };
    let mut first = min_amount.clone();
    first += &amount(step);
    if first > all {
        let detail = format!("one step {} is larger than capacity value: {}", first.canonical(), text(capacity));
        refuse("step", step, detail);
    }
    for value in [Some(default), max].into_iter().flatten() {
        let distance = amount(value).value().wrapping_sub(min_amount.value());
        // A step of nothing gets nowhere.
        if distance.checked_rem(amount(step).value()) != Some(0) {
            refuse(
                "step",
                value,
                format!("value is not a multiple of a given step ({}) from ({})", text(step), text(min)),
            );
        }
    }
}

fn check_mappings(device: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (resource, mapping) in device.entries("nodeAllocatableResourceMappings") {
        let path = path.key(resource);
        let is_native = !resource.contains('/') || resource.contains("kubernetes.io/");
        if !is_native {
            let detail = "must be a node allocatable resource name";
            errors.push(Error::invalid(&path, BadValue::json(resource), detail));
        }
        let (factor, key) = (mapping.some("allocationMultiplier"), mapping.some("capacityKey").and_then(Value::as_str));
        if factor.is_none() && key.is_none() {
            let detail = "at least one of allocationMultiplier or capacityKey must be set";
            errors.push(Error::invalid(&path, "", detail));
        }
        if let Some(factor) = factor.filter(|factor| amount(factor).signum() <= 0) {
            errors.push(Error::invalid(&path.child("allocationMultiplier"), quantity_text(factor), "must be positive"));
        }
        let at = path.child("capacityKey");
        match key {
            Some("") => errors.push(Error::invalid(&at, "", "capacityKey must not be an empty string")),
            Some(key) if member(device, "capacity").get(key).is_none() => {
                errors.push(Error::not_found(&at, BadValue::json(key)));
            }
            _ => {}
        }
    }
}

/// Keys that are too long to show lose their middle.
fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let rest = max - 3;
    let (head, tail) = (rest.div_ceil(2), text.len() - rest / 2);
    let bytes = text.as_bytes();
    format!("{}...{}", String::from_utf8_lossy(&bytes[..head]), String::from_utf8_lossy(&bytes[tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantic_versions() {
        for text in ["1.2.3", "0.0.0", "1.2.3-alpha.1", "1.2.3-0a.b-c+build.007", "1.2.3+a-b"] {
            assert!(is_semantic_version(text), "{text}");
        }
        for text in ["", "1.2", "1.2.3.4", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "v1.2.3", "1.2.3-a..b"] {
            assert!(!is_semantic_version(text), "{text}");
        }
    }

    #[test]
    fn long_keys_lose_their_middle() {
        assert_eq!(shortened("abc", 16), "abc");
        assert_eq!(shortened("abcdefghijklmnopqrstuvwxyz", 16), "abcdefg...uvwxyz");
    }
}
