//! The metrics of autoscalers as autoscaling/v1 has them in annotations: flat, with a name for each sort of target.

use super::annotations::{Order, PLAIN};
use super::values::put;
use kubelith_meta::{Map, Quantity, Value};

/// What a source of metrics is called, and where v1 and v2 have its parts.
struct Source {
    key: &'static str,
    /// Paths in v2 and names in v1, for the targets (`spec.metrics`).
    spec: &'static [(&'static [&'static str], &'static str)],
    /// The same for what was measured (`status.currentMetrics`).
    status: &'static [(&'static [&'static str], &'static str)],
    /// Names in v1 that are no pointers, in spec and in status: they print "0" if v2 has nothing.
    always: [&'static str; 2],
}

const SOURCES: [Source; 5] = [
    Source {
        key: "object",
        spec: &[
            (&["describedObject"], "target"),
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "averageValue"),
        ],
        status: &[
            (&["describedObject"], "target"),
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "averageValue"),
        ],
        always: ["targetValue", "currentValue"],
    },
    Source {
        key: "pods",
        spec: &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
        status: &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
        always: ["targetAverageValue", "currentAverageValue"],
    },
    Source { key: "resource", spec: RESOURCE_SPEC, status: RESOURCE_STATUS, always: ["", "currentAverageValue"] },
    Source {
        key: "containerResource",
        spec: RESOURCE_SPEC,
        status: RESOURCE_STATUS,
        always: ["", "currentAverageValue"],
    },
    Source {
        key: "external",
        spec: &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
        status: &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
        always: ["", "currentValue"],
    },
];

const RESOURCE_SPEC: &[(&[&str], &str)] = &[
    (&["name"], "name"),
    (&["container"], "container"),
    (&["target", "averageUtilization"], "targetAverageUtilization"),
    (&["target", "averageValue"], "targetAverageValue"),
];

const RESOURCE_STATUS: &[(&[&str], &str)] = &[
    (&["name"], "name"),
    (&["container"], "container"),
    (&["current", "averageUtilization"], "currentAverageUtilization"),
    (&["current", "averageValue"], "currentAverageValue"),
];

const SELECTOR: Order = Order(&[
    ("matchLabels", PLAIN),
    ("matchExpressions", Order(&[("key", PLAIN), ("operator", PLAIN), ("values", PLAIN)])),
]);

const REFERENCE: Order = Order(&[("kind", PLAIN), ("name", PLAIN), ("apiVersion", PLAIN)]);

/// The order in which v1's metric targets print their keys.
pub const SPEC_ORDER: Order = Order(&[
    ("type", PLAIN),
    (
        "object",
        Order(&[
            ("target", REFERENCE),
            ("metricName", PLAIN),
            ("targetValue", PLAIN),
            ("selector", SELECTOR),
            ("averageValue", PLAIN),
        ]),
    ),
    ("pods", Order(&[("metricName", PLAIN), ("targetAverageValue", PLAIN), ("selector", SELECTOR)])),
    ("resource", RESOURCE_SPEC_ORDER),
    ("containerResource", RESOURCE_SPEC_ORDER),
    (
        "external",
        Order(&[
            ("metricName", PLAIN),
            ("metricSelector", SELECTOR),
            ("targetValue", PLAIN),
            ("targetAverageValue", PLAIN),
        ]),
    ),
]);

const RESOURCE_SPEC_ORDER: Order =
    Order(&[("name", PLAIN), ("targetAverageUtilization", PLAIN), ("targetAverageValue", PLAIN), ("container", PLAIN)]);

/// The order in which v1's measured metrics print their keys.
pub const STATUS_ORDER: Order = Order(&[
    ("type", PLAIN),
    (
        "object",
        Order(&[
            ("target", REFERENCE),
            ("metricName", PLAIN),
            ("currentValue", PLAIN),
            ("selector", SELECTOR),
            ("averageValue", PLAIN),
        ]),
    ),
    ("pods", Order(&[("metricName", PLAIN), ("currentAverageValue", PLAIN), ("selector", SELECTOR)])),
    ("resource", RESOURCE_STATUS_ORDER),
    ("containerResource", RESOURCE_STATUS_ORDER),
    (
        "external",
        Order(&[
            ("metricName", PLAIN),
            ("metricSelector", SELECTOR),
            ("currentValue", PLAIN),
            ("currentAverageValue", PLAIN),
        ]),
    ),
]);

const RESOURCE_STATUS_ORDER: Order = Order(&[
    ("name", PLAIN),
    ("currentAverageUtilization", PLAIN),
    ("currentAverageValue", PLAIN),
    ("container", PLAIN),
]);

/// Which of the two lists of metrics.
#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    Spec,
    Status,
}

impl Source {
    fn parts(&self, side: Side) -> &'static [(&'static [&'static str], &'static str)] {
        if side == Side::Spec { self.spec } else { self.status }
    }

    fn always(&self, side: Side) -> &'static str {
        self.always[side as usize]
    }
}

/// A metric of v2 as v1 has it.
pub fn to_v1(metric: &Value, side: Side) -> Value {
    let mut out = Map::new();
    put(&mut out, "type", metric.get("type").cloned());
    for source in &SOURCES {
        let Some(from) = metric.get(source.key) else { continue };
        let mut flat = Map::new();
        for (path, name) in source.parts(side) {
            put(&mut flat, name, from.at(path).cloned());
        }
        let always = source.always(side);
        if !always.is_empty() && !flat.contains_key(always) {
            flat.insert(always, "0");
        }
        out.insert(source.key, flat);
    }
    Value::Object(out)
}

/// A metric of v1 as v2 has it. v1 does not say what sort of target it has, but what is given tells.
pub fn to_v2(metric: &Value, side: Side) -> Value {
    let mut out = Map::new();
    put(&mut out, "type", metric.get("type").cloned());
    for source in &SOURCES {
        let Some(from) = metric.get(source.key) else { continue };
        let mut nested = Value::object();
        for (path, name) in source.parts(side) {
            if let Some(value) = from.get(name) {
                nested.set_at(path, value.clone());
            }
        }
        if side == Side::Spec {
            // v1 cannot leave an object's value out, and "0" would be no valid target in v2.
            let average = nested.at(&["target", "averageValue"]).is_some();
            if source.key == "object" && average && is_zero(nested.str_at(&["target", "value"])) {
                nested.remove_at(&["target", "value"]);
            }
            nested.set_at(&["target", "type"], target_type(source.key, &nested).into());
        }
        out.insert(source.key, nested);
    }
    Value::Object(out)
}

fn target_type(source: &str, nested: &Value) -> &'static str {
    let has = |key: &str| nested.at(&["target", key]).is_some();
    match source {
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    }
}

fn is_zero(quantity: &str) -> bool {
    quantity.parse::<Quantity>().is_ok_and(|q| q.is_zero())
}
