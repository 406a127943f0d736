//! What is scaled, and by what.

use kubelith_meta::{GroupVersionKind, Value};
use kubelith_rules::cells::{Cells, Row, list};

pub const CELLS: Cells = &[
    ("autoscaler_reference", |row| {
        let target = row.at(&["spec", "scaleTargetRef"]).unwrap_or(&Value::Null);
        Some(format!("{}/{}", target.str_at(&["kind"]), target.str_at(&["name"])).into())
    }),
    ("autoscaler_targets", targets),
];

/// How many metrics a cell shows.
const SHOWN: usize = 2;

fn targets(row: &Row<'_>) -> Option<Value> {
    // Version 1 keeps most metrics in annotations; they are read as those of version 2.
    let kind = |version: &str| GroupVersionKind::new("autoscaling", version, "HorizontalPodAutoscaler");
    let converted = match row.text(&["apiVersion"]) {
        "autoscaling/v1" => kubelith_catalog::convert(row.object.clone(), &kind("v1"), &kind("v2")).ok(),
        _ => None,
    };
    let object = converted.as_ref().unwrap_or(row.object);
    let (specs, statuses) = (list(object, &["spec", "metrics"]), list(object, &["status", "currentMetrics"]));
    if specs.is_empty() {
        return Some("<none>".into());
    }
    let texts: Vec<String> = specs.iter().enumerate().map(|(i, spec)| metric(spec, statuses.get(i))).collect();
    let shown = texts[..texts.len().min(SHOWN)].join(", ");
    Some(if texts.len() > SHOWN { format!("{shown} + {} more...", texts.len() - SHOWN) } else { shown }.into())
}

/// `current/target` of one metric.
fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match spec.str_at(&["type"]) {
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |name| spec.at(&[source, "target", name]).filter(|v| !v.is_null());
    let status = status.and_then(|s| s.get(source)).filter(|s| !s.is_null());
    // Whether the metric is there at all, and the amount if it is.
    let current = |name| status.map(|s| s.at(&["current", name]).filter(|v| !v.is_null()));
    let name = spec.str_at(&[source, "name"]);
    match source {
        "pods" => format!("{}/{}", known(current("averageValue")), amount(target("averageValue"))),
        "external" | "object" => match target("averageValue") {
            Some(wanted) => {
                let current = current("averageValue").flatten();
                format!("{}/{} (avg)", current.map_or("<unknown>", text), text(wanted))
            }
            None => format!("{}/{}", known(current("value")), amount(target("value"))),
        },
        _ => match target("averageValue") {
            Some(wanted) => format!("{name}: {}/{}", known(current("averageValue")), text(wanted)),
            None => {
                let percent = |v: Option<&Value>, absent: &str| match v.and_then(Value::as_i64) {
                    Some(percent) => format!("{percent}%"),
                    None => absent.to_owned(),
                };
                let current = percent(current("averageUtilization").flatten(), "<unknown>");
                format!("{name}: {current}/{}", percent(target("averageUtilization"), "<auto>"))
            }
        },
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// An amount that is not there prints as Go prints a nil pointer.
fn amount(value: Option<&Value>) -> &str {
    value.map_or("<nil>", text)
}

fn known(value: Option<Option<&Value>>) -> &str {
    value.map_or("<unknown>", amount)
}
