//! Bindings of admission policies, mutating and validating.

pub mod validate;

use crate::admissionregistration::static_names::unlike_static;
use kubelith_meta::{Map, Value};
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row, joined, list, strings};
use kubelith_schema::lifecycle::Generation;
use std::fmt::Write;

pub const MUTATING_BINDING: Kind = unlike_static(
    Kind {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicybindings",
        rules: validate::MUTATING,
        ..Kind::PLAIN
    }
    .generation(Generation::Spec)
    .guarded(),
);

pub const VALIDATING_BINDING: Kind = unlike_static(
    Kind {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicybindings",
        rules: validate::VALIDATING,
        cells: CELLS,
        ..Kind::PLAIN
    }
    .generation(Generation::Spec)
    .guarded(),
);

pub const CELLS: Cells = &[("binding_param", binding_param)];

/// `namespace/name`, or the selector.
fn binding_param(row: &Row<'_>) -> Option<Value> {
    let Some(reference) = row.at(&["spec", "paramRef"]) else { return Some("<unset>".into()) };
    Some(match (reference.str_at(&["namespace"]), reference.str_at(&["name"])) {
        (_, "") => match reference.get("selector").filter(|s| !s.is_null()) {
            Some(selector) => go_selector(selector).into(),
            None => "<unset>".into(),
        },
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    })
}

/// A selector as Go prints the struct.
fn go_selector(selector: &Value) -> String {
    let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        let _ = write!(text, "{key}: {},", value.as_str().unwrap_or(""));
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for e in list(selector, &["matchExpressions"]) {
        let (key, operator) = (e.str_at(&["key"]), e.str_at(&["operator"]));
        let values = joined(strings(list(e, &["values"])), " ");
        let _ = write!(text, "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},");
    }
    text.push_str("},}");
    text
}
