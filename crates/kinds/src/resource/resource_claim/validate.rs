//! The spec of claims, which templates and classes have parts of, too.

use crate::resource::resource_claim::status;
use crate::resource::shared::{EFFECTS, attribute_name, each, each_once, unchanged_spec};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_label_value, is_qualified_name, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{
    Fields, NULL, dns_label, dns_subdomain, invalid_all, member, meta, meta_update, one_of, supported,
};
use kubelith_rules::expression::{self, Environment, Expression, Purpose};
use kubelith_rules::values::driver_name;
use kubelith_rules::{Env, Rules};
use std::collections::HashMap;

pub const RULES: Rules = Rules {
    create: |request, claim| {
        let mut errors = meta(claim, Namespacing::Required, name_is_dns_subdomain);
        check_spec(request.env, claim.get("spec"), &Path::new("spec"), &mut errors);
        errors
    },
    update: |request, new, old| match request.subresource {
        "status" => status::check(new, old),
        _ => {
            let mut errors = meta(new, Namespacing::Required, name_is_dns_subdomain);
            errors.extend(meta_update(new, old));
            unchanged_spec("ResourceClaimSpec", new, old, &mut errors);
            errors
        }
    },
};

pub const MAX_REQUESTS: usize = 32;

const MAX_CONSTRAINTS: usize = 32;

pub const MAX_CONFIGURATIONS: usize = 32;

const MAX_SELECTORS: usize = 32;

const MAX_ALTERNATIVES: usize = 8;

const MAX_EXPRESSION: usize = 10 * 1024;

pub const MAX_PARAMETERS: usize = 10 * 1024;

const WHICH_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The names of a claim's requests, each with those of its alternatives.
pub struct Requests<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Requests<'a> {
    pub fn of(devices: &'a Value) -> Requests<'a> {
        let names = |request: &'a Value| request.list("firstAvailable").iter().map(|sub| sub.text("name")).collect();
        Requests(devices.list("requests").iter().map(|request| (request.text("name"), names(request))).collect())
    }

    /// A reference to one of them.
    pub fn check(&self, name: &str, path: &Path<'_>, errors: &mut ErrorList) {
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() > 2 {
            return errors.push(Error::invalid(path, name, WHICH_REQUEST));
        }
        for part in &parts {
            dns_label(part, path, errors);
        }
        let is_known = match parts.as_slice() {
            [request, alternative] => self.0.get(request).is_some_and(|names| names.contains(alternative)),
            _ => self.0.contains_key(name),
        };
        if !is_known {
            errors.push(Error::invalid(path, name, WHICH_REQUEST));
        }
    }

    pub fn check_list(&self, owner: &Value, path: &Path<'_>, errors: &mut ErrorList) {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        each_once(owner.list("requests"), MAX_REQUESTS, &path.child("requests"), errors, text, |name, path, errors| {
            self.check(&text(name), path, errors);
        });
    }
}

pub fn check_spec(env: &Env, spec: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let devices = spec.map_or(&NULL, |spec| member(spec, "devices"));
    let path = path.child("devices");
    let requests = Requests::of(devices);
    let name = |request: &Value| request.text("name").to_owned();
    each_once(
        devices.list("requests"),
        MAX_REQUESTS,
        &path.child("requests"),
        errors,
        name,
        |request, path, errors| {
            check_request(env, request, path, errors);
        },
    );
    let constraints = path.child("constraints");
    each(devices.list("constraints"), MAX_CONSTRAINTS, &constraints, errors, |constraint, path, errors| {
        check_constraint(env, constraint, &requests, path, errors);
    });
    each(devices.list("config"), MAX_CONFIGURATIONS, &path.child("config"), errors, |config, path, errors| {
        requests.check_list(config, path, errors);
        check_configuration(config, Parameters::New, path, errors);
    });
}

fn check_request(env: &Env, request: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    dns_label(request.text("name"), &path.child("name"), errors);
    let alternatives = request.list("firstAvailable");
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    match (request.some("exactly"), alternatives.is_empty()) {
        (None, true) => errors.push(Error::required(path, ONE)),
        (Some(_), false) => {
            let detail = format!("{ONE}, but multiple fields are set");
            errors.push(Error::invalid(path, BadValue::text("null"), detail));
        }
        (Some(exactly), true) => check_device_request(env, exactly, &path.child("exactly"), errors),
        (None, false) => {
            let name = |sub: &Value| sub.text("name").to_owned();
            let path = path.child("firstAvailable");
            each_once(alternatives, MAX_ALTERNATIVES, &path, errors, name, |sub, path, errors| {
                dns_label(sub.text("name"), &path.child("name"), errors);
                check_device_request(env, sub, path, errors);
            });
        }
    }
}

fn check_device_request(env: &Env, request: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (class, class_path) = (request.text("deviceClassName"), path.child("deviceClassName"));
    if class.is_empty() {
        errors.push(Error::required(&class_path, ""));
    } else {
        dns_subdomain(class, &class_path, errors);
    }
    check_selectors(env, request.list("selectors"), Stored::No, &path.child("selectors"), errors);
    let (count, count_path) = (request.number("count"), path.child("count"));
    match request.text("allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.push(Error::invalid(&count_path, count, detail));
        }
        "ExactCount" if count <= 0 => errors.push(Error::invalid(&count_path, count, "must be greater than zero")),
        mode => supported(mode, &["All", "ExactCount"], &path.child("allocationMode"), errors),
    }
    for (i, toleration) in request.list("tolerations").iter().enumerate() {
        check_toleration(toleration, &path.item("tolerations", i), errors);
    }
}

fn check_toleration(toleration: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (key, value, effect) = (toleration.text("key"), toleration.text("value"), toleration.text("effect"));
    if !key.is_empty() {
        invalid_all(is_qualified_name(key), &path.child("key"), key, errors);
    }
    match toleration.text("operator") {
        "Exists" if !value.is_empty() => {
            errors.push(Error::invalid(&path.child("value"), value, "must be empty for operator `Exists`"));
        }
        "Equal" => invalid_all(is_label_value(value), &path.child("value"), value, errors),
        operator => one_of(operator, &["Equal", "Exists"], &path.child("operator"), errors),
    }
    if !effect.is_empty() {
        supported(effect, &EFFECTS, &path.child("effect"), errors);
    }
}

pub fn check_selectors(env: &Env, selectors: &[Value], stored: Stored, path: &Path<'_>, errors: &mut ErrorList) {
    each(selectors, MAX_SELECTORS, path, errors, |selector, path, errors| {
        let path = path.child("cel");
        match selector.some("cel") {
            None => errors.push(Error::required(&path, "")),
            Some(cel) if cel.text("expression").len() > MAX_EXPRESSION => {
                errors.push(Error::too_long(&path.child("expression"), MAX_EXPRESSION));
            }
            Some(cel) => {
                let purpose = Purpose::DeviceSelector;
                let is_stored = stored == Stored::Yes;
                let expressions = &*env.expressions;
                let environment = Environment { expressions, purpose, has_params: false, variables: &[], is_stored };
                let source = Expression::plain(cel.text("expression"));
                expression::check(source, environment, &path.child("expression"), errors);
            }
        }
    });
}

fn check_constraint(env: &Env, constraint: &Value, requests: &Requests<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    requests.check_list(constraint, path, errors);
    let given = ["matchAttribute", "distinctAttribute"].into_iter().find(|key| constraint.has(key));
    let Some(key) = given else {
        if !env.features.consumable_capacity {
            return errors.push(Error::required(&path.child("matchAttribute"), ""));
        }
        let detail =
            "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
        return errors.push(Error::required(path, detail));
    };
    let (name, path) = (constraint.text(key), path.child(key));
    attribute_name(name, &path, errors);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(Error::invalid(&path, BadValue::json(name), detail));
    }
}

/// Whether expressions were there before: those may use what only newer servers let others use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    Yes,
    No,
}

/// Whether parameters were there before: those may be larger than what is taken now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    New,
    Stored,
}

pub fn check_configuration(config: &Value, parameters: Parameters, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("opaque");
    let Some(opaque) = config.some("opaque") else { return errors.push(Error::required(&path, "")) };
    driver_name(opaque.text("driver"), &path.child("driver"), errors);
    check_raw(opaque.some("parameters"), parameters, MAX_PARAMETERS, &path.child("parameters"), errors);
}

/// Any JSON object.
pub fn check_raw(value: Option<&Value>, parameters: Parameters, max: usize, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        None => errors.push(Error::required(path, "")),
        Some(value) if parameters == Parameters::New && kubelith_meta::text::json(value).len() > max => {
            errors.push(Error::too_long(path, max));
        }
        Some(Value::Object(_)) => {}
        Some(_) => errors.push(Error::invalid(path, "<value omitted>", "must be a valid JSON object")),
    }
}

/// The first request or result below `list` that wants to look after devices which others use.
pub fn admin_access(object: &Value, list: &[&str], inside: &[&str]) -> Option<usize> {
    let items = object.at(list).and_then(Value::as_array)?;
    items.iter().position(|item| item.at(inside).unwrap_or(item).flag("adminAccess"))
}
