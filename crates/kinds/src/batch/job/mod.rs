//! Jobs: one finds its pods by a label with its own uid.

pub mod cells;
pub mod defaults;
mod indexes;
mod policy;
mod status;
mod update;
pub mod validate;

use crate::workload::follows_template;
use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::template::{IN_POD_NAMES, name_warnings};
use kubelith_pods::warnings;
use kubelith_rules::Kind;
use kubelith_rules::gated::{Feature, Kept, feature};
use kubelith_schema::lifecycle::{GarbageCollection, Generation, Part};

pub const JOB: Kind = Kind {
    group: "batch",
    plural: "jobs",
    defaults: defaults::RULES,
    features: &[(&["spec", "template", "spec"], POD_FEATURES), (&[], FEATURES)],
    rules: validate::RULES,
    cells: cells::CELLS,

    generation: Generation::Spec,
    garbage_collection: GarbageCollection::OrphanDependents,
    before_delete: |call, options, _| {
        if options.propagation.is_none() && options.orphan_dependents.is_none() {
            call.warn(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                 them or set propagationPolicy=Orphan to suppress this warning",
            );
        }
        Ok(())
    },
    prepare_for_create: |_, _, job| {
        // With a generated name every attempt has a copy, which has labels of its own.
        let follows = job.str_at(&["metadata", "generateName"]).is_empty() && follows_template(job);
        if job.at(&["spec", "manualSelector"]).and_then(Value::as_bool) != Some(true) {
            generate_selector(job);
        }
        if follows {
            follow_template(job);
        }
    },
    warnings_on_create: |_, job| {
        let mut warnings = name_warnings(job, IN_POD_NAMES);
        warnings.extend(job_warnings(&Path::new("spec"), job.get("spec"), None));
        warnings
    },
    warnings_on_update: |_, part, job, old| match part {
        Part::Main if generation_differs(job, old) => {
            job_warnings(&Path::new("spec"), job.get("spec"), old.get("spec"))
        }
        _ => Vec::new(),
    },
    ..Kind::PLAIN
};

const FEATURES: &[Feature] = &[
    feature(&["JobManagedBy"], &["spec.managedBy"]).kept(Kept::OnUpdate),
    feature(&["JobSuccessPolicy"], &["spec.successPolicy"]),
    feature(&["JobBackoffLimitPerIndex"], &["spec.backoffLimitPerIndex"]),
    feature(&["JobBackoffLimitPerIndex"], &["spec.maxFailedIndexes"]),
    feature(&["JobBackoffLimitPerIndex"], &["spec.podFailurePolicy"]).kept(Kept::OnUpdate).by(drop_fail_index),
    feature(&["JobPodReplacementPolicy"], &["spec.podReplacementPolicy"]),
];

/// Without a limit for each index nothing fails by index.
fn drop_fail_index(policy: &mut Value) {
    if let Some(rules) = policy.at_mut(&["rules"]).and_then(Value::as_array_mut) {
        rules.retain(|rule| rule.str_at(&["action"]) != "FailIndex");
    }
}

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// Beyond these, completed indexes may not fit into status.
const COMPLETIONS_SOFT_LIMIT: i64 = 100_000;

const PARALLELISM_SOFT_LIMIT: i64 = 10_000;

/// Labels the template and selects by the label. Labels that the client gave are left; a wrong one is refused later.
fn generate_selector(job: &mut Value) {
    let meta = job.meta();
    let (name, uid) = (meta.name().to_owned(), meta.uid().to_owned());
    let labels = [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        (CONTROLLER_UID, &uid),
    ];
    for (key, value) in labels {
        set_absent(job, &["spec", "template", "metadata", "labels", key], value);
    }
    set_absent(job, &["spec", "selector", "matchLabels", CONTROLLER_UID], &uid);
}

/// The labels of a job that has none of its own are its template's, also those that are made here.
fn follow_template(job: &mut Value) {
    let labels = job.at(&["spec", "template", "metadata", "labels"]).cloned();
    job.put_at(&["metadata", "labels"], labels);
}

fn set_absent(object: &mut Value, path: &[&str], value: &str) {
    if object.at(path).is_none() {
        object.set_at(path, value.into());
    }
}

pub fn generation_differs(object: &Value, old: &Value) -> bool {
    object.meta().generation() != old.meta().generation()
}

pub fn job_warnings(path: &Path<'_>, spec: Option<&Value>, old: Option<&Value>) -> Vec<String> {
    let Some(spec) = spec else { return Vec::new() };
    let mut warnings = Vec::new();
    let count = |key: &str| spec.get(key).and_then(Value::as_i64).unwrap_or(0);
    let indexed = spec.str_at(&["completionMode"]) == "Indexed";
    if indexed && count("completions") > COMPLETIONS_SOFT_LIMIT && count("parallelism") > PARALLELISM_SOFT_LIMIT {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    if let Some(template) = spec.get("template") {
        let old = old.and_then(|o| o.get("template"));
        warnings.extend(warnings::of_template(&path.child("template"), template, old));
    }
    warnings
}
