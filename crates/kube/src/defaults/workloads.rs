//! Controllers of pods: apps, batch, ReplicationController.

use super::{Rules, drop_annotations, elements_mut, is_absent, is_zero, object_mut, set_absent, text};
use crate::annotations::{ROLLBACK_TO, TEMPLATE_GENERATION};
use kubelith_meta::{Map, Value};

pub const RULES: Rules = &[
    ("io.k8s.api.apps.v1.Deployment", rollback_revision),
    ("io.k8s.api.apps.v1.DeploymentStrategy", |m| rolling_update(m, "25%".into(), "25%".into())),
    ("io.k8s.api.apps.v1.DaemonSet", template_generation),
    ("io.k8s.api.apps.v1.DaemonSetUpdateStrategy", |m| rolling_update(m, 1i64.into(), 0i64.into())),
    ("io.k8s.api.apps.v1.StatefulSetSpec", type_claim_templates),
    ("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", stateful_set_strategy),
    ("io.k8s.api.batch.v1.Job", job),
    ("io.k8s.api.core.v1.ReplicationController", replication_controller),
];

/// Of stateful sets, whose updates may take several pods down at once.
pub const MAX_UNAVAILABLE: Rules = &[("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", |strategy| {
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = object_mut(strategy, "rollingUpdate")
    {
        set_absent(rolling, "maxUnavailable", 1i64);
    }
})];

/// How far a rolling update may go beside the wanted number.
fn rolling_update(strategy: &mut Map, max_unavailable: Value, max_surge: Value) {
    if text(strategy, "type") != "RollingUpdate" {
        return;
    }
    let rolling = strategy.entry_or_null("rollingUpdate").make_object();
    set_absent(rolling, "maxUnavailable", max_unavailable);
    set_absent(rolling, "maxSurge", max_surge);
}

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

/// The annotation stands for a field of the internal form, which is always there (apps/v1/conversion.go).
fn template_generation(daemon_set: &mut Map) {
    let metadata = daemon_set.entry_or_null("metadata").make_object();
    set_absent(metadata.entry_or_null("annotations").make_object(), TEMPLATE_GENERATION, "0");
}

/// Claims in a template have their type written out (apps/v1/conversion.go).
fn type_claim_templates(spec: &mut Map) {
    for claim in elements_mut(spec, "volumeClaimTemplates") {
        for (key, value) in [("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")] {
            if text(claim, key) != value {
                claim.insert(key, value);
            }
        }
    }
}

fn stateful_set_strategy(strategy: &mut Map) {
    if is_zero(strategy, "type") {
        strategy.insert("type", "RollingUpdate");
        set_absent(strategy, "rollingUpdate", Map::new());
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = object_mut(strategy, "rollingUpdate")
    {
        set_absent(rolling, "partition", 0i64);
    }
}

/// Of jobs only: the template of a CronJob stays as it was given.
fn job(job: &mut Map) {
    labels_from_template(job);
    let spec = job.entry_or_null("spec").make_object();
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        spec.insert("completions", 1i64);
    }
    set_absent(spec, "parallelism", 1i64);
    let per_index = !is_absent(spec, "backoffLimitPerIndex");
    set_absent(spec, "backoffLimit", if per_index { i64::from(i32::MAX) } else { 6 });
    set_absent(spec, "completionMode", "NonIndexed");
    set_absent(spec, "suspend", false);
    let has_failure_policy = !is_absent(spec, "podFailurePolicy");
    set_absent(spec, "podReplacementPolicy", if has_failure_policy { "Failed" } else { "TerminatingOrFailed" });
    set_absent(spec, "manualSelector", false);
}

fn replication_controller(controller: &mut Map) {
    labels_from_template(controller);
    let spec = controller.entry_or_null("spec").make_object();
    if is_zero(spec, "selector")
        && let Some(labels) = template_labels(spec).cloned()
    {
        spec.insert("selector", labels);
    }
}

/// An object without labels has those of its template. The two are one then: [`follows_template`] tells.
fn labels_from_template(object: &mut Map) {
    if object.get("metadata").and_then(|m| m.get("labels")).is_some_and(|labels| !labels.is_empty()) {
        return;
    }
    let template = object_mut(object, "spec").and_then(|spec| spec.get_mut("template"));
    let labels = template.and_then(|template| template.at_mut(&LABELS)).and_then(Value::as_object_mut);
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
        labels.share_entries();
        let labels = labels.clone();
        object.entry_or_null("metadata").make_object().insert("labels", labels);
    }
}

/// Whether the labels of an object are those of its template because it had none of its own, and nobody changed either.
pub fn follows_template(object: &Value) -> bool {
    let template = object.at(&["spec", "template"]).and_then(|template| template.at(&LABELS));
    match (object.at(&LABELS), template) {
        (Some(Value::Object(own)), Some(Value::Object(template))) => own.shares_with(template),
        _ => false,
    }
}

const LABELS: [&str; 2] = ["metadata", "labels"];

fn template_labels(spec: &Map) -> Option<&Value> {
    spec.get("template")?.at(&LABELS).filter(|labels| !labels.is_empty())
}
