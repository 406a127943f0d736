//! Admission policies.

use super::{CellFn, Row, joined, list, strings};
use kubelith_meta::{Map, Value};
use std::fmt::Write;

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "policy_param_kind" => policy_param_kind,
        "binding_param" => binding_param,
        _ => return None,
    })
}

fn policy_param_kind(row: &Row<'_>) -> Option<Value> {
    let Some(kind) = row.at(&["spec", "paramKind"]) else { return Some("<unset>".into()) };
    Some(format!("{}/{}", kind.str_at(&["apiVersion"]), kind.str_at(&["kind"])).into())
}

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
