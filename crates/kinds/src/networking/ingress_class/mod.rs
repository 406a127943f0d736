//! IngressClasses.

use crate::networking::shared::check_reference;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::{name_is_dns_label, name_is_dns_subdomain, validate_domain_prefixed_path};
use kubelith_meta::object::Namespacing;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::common::{Fields, SPEC, immutable_text, member, meta, meta_update, name_full};
use kubelith_rules::{Kind, Rules};
use kubelith_schema::lifecycle::Generation;

pub const INGRESS_CLASS: Kind =
    Kind { group: "networking.k8s.io", plural: "ingressclasses", rules: RULES, cells: CELLS, ..Kind::PLAIN }
        .generation(Generation::Spec);

pub const RULES: Rules = Rules {
    create: |_, class| ingress_class(class),
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        let (spec, before) = (member(new, "spec"), member(old, "spec"));
        immutable_text(spec, before, "controller", &SPEC, &mut errors);
        errors.extend(ingress_class(new));
        errors
    },
};

const MAX_CONTROLLER: usize = 250;

fn ingress_class(class: &Value) -> ErrorList {
    let mut errors = meta(class, Namespacing::Forbidden, name_is_dns_subdomain);
    let spec = member(class, "spec");
    let controller = spec.text("controller");
    if controller.len() > MAX_CONTROLLER {
        errors.push(Error::too_long(&SPEC.child("controller"), MAX_CONTROLLER));
    }
    errors.extend(validate_domain_prefixed_path(controller, &SPEC.child("controller")));
    let Some(parameters) = spec.some("parameters") else { return errors };
    let path = SPEC.child("parameters");
    check_reference(parameters, &path, &mut errors);
    let namespace = parameters.some("namespace").and_then(Value::as_str);
    let namespace_path = path.child("namespace");
    match parameters.some("scope").and_then(Value::as_str) {
        None => errors.push(Error::required(&path.child("scope"), "")),
        Some("Namespace") => match namespace {
            None => errors.push(Error::required(&namespace_path, "`parameters.scope` is set to 'Namespace'")),
            Some(namespace) => name_full(name_is_dns_label, namespace, &namespace_path, &mut errors),
        },
        Some("Cluster") => {
            if namespace.is_some() {
                errors.push(Error::forbidden(&namespace_path, "`parameters.scope` is set to 'Cluster'"));
            }
        }
        Some(other) => {
            errors.push(Error::not_supported(&path.child("scope"), other, ["Cluster", "Namespace"]));
        }
    }
    errors
}

pub const CELLS: Cells = &[("ingress_class_parameters", ingress_class_parameters)];

/// `Kind.group/name`.
fn ingress_class_parameters(row: &Row<'_>) -> Option<Value> {
    let Some(parameters) = row.at(&["spec", "parameters"]) else { return Some("<none>".into()) };
    let (kind, name) = (parameters.str_at(&["kind"]), parameters.str_at(&["name"]));
    Some(match parameters.get("apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}/{name}").into(),
        None => format!("{kind}/{name}").into(),
    })
}
