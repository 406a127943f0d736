//! Rolling updates, and the revision to go back to.

use crate::workload::rolling_update;
use kubelith_meta::{Map, Value};
use kubelith_rules::annotations::ROLLBACK_TO;
use kubelith_rules::defaults::{Defaults, drop_annotations, object_mut};

pub const RULES: Defaults = &[
    ("io.k8s.api.apps.v1.Deployment", rollback_revision),
    ("io.k8s.api.apps.v1.DeploymentStrategy", |m| rolling_update(m, "25%".into(), "25%".into())),
];

/// The annotation stands for a field of the internal form, which is a number (apps/v1/conversion.go).
fn rollback_revision(deployment: &mut Map) {
    let Some(annotations) = object_mut(deployment, "metadata").and_then(|m| object_mut(m, "annotations")) else {
        return;
    };
    let Some(revision) = annotations.get(ROLLBACK_TO).and_then(Value::as_str) else { return };
    match revision.parse::<i64>() {
        Ok(number) if number.to_string() == revision => {}
        Ok(number) => {
            annotations.insert(ROLLBACK_TO, number.to_string());
        }
        Err(_) if revision.is_empty() => drop_annotations(deployment, &[ROLLBACK_TO]),
        Err(_) => {}
    }
}
