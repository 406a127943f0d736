//! The apps group: DaemonSets count changes of their template, in an annotation.

use super::{Kind, pod_warnings};
use crate::annotations::TEMPLATE_GENERATION;
use kubelith_catalog::builtin;
use kubelith_meta::field::Path;
use kubelith_meta::names::is_dns1123_label;
use kubelith_meta::{GroupVersion, Value};
use kubelith_registry::{Call, Generation, Part};
use kubelith_schema::{Empties, canonicalize};

pub const DAEMON_SET: Kind = Kind {
    generation: Generation::Spec,
    prepare_for_create: |_, _, set| {
        let given = template_generation(set);
        set_template_generation(set, given.max(1));
    },
    prepare_for_update: |_, _, part, set, old| {
        let changed = part == Part::Main && !is_same_stored(set, old, &TEMPLATE);
        set_template_generation(set, template_generation(old) + i64::from(changed));
    },
    warnings_on_create: |_, set| template_warnings(set, None),
    warnings_on_update: |_, part, set, old| {
        let changed = template_generation(set) != template_generation(old);
        if part == Part::Main && changed { template_warnings(set, Some(old)) } else { Vec::new() }
    },
    complete_blank: |set| set_template_generation(set, 0),
    ..Kind::PLAIN
};

pub const DEPLOYMENT: Kind = Kind {
    generation: Generation::SpecAndAnnotations,
    // Alone among kinds, its labels are no business of those who write its status.
    prepare_for_update: |_, _, part, deployment, old| {
        if part == Part::Status {
            deployment.copy_at(&["metadata", "labels"], old);
        }
    },
    reset_fields: |part| match part {
        Part::Main => &[&["status"]],
        Part::Status => &[&["spec"], &["metadata", "labels"]],
        Part::Other(_) => &[],
    },
    warnings_on_create: |_, deployment| named_template_warnings(deployment),
    warnings_on_update: template_update_warnings,
    complete_blank: no_replicas,
    ..Kind::PLAIN
};

pub const REPLICA_SET: Kind = Kind {
    generation: Generation::Spec,
    warnings_on_create: |_, set| named_template_warnings(set),
    warnings_on_update: template_update_warnings,
    complete_blank: no_replicas,
    ..Kind::PLAIN
};

pub const STATEFUL_SET: Kind = Kind {
    generation: Generation::Spec,
    warnings_on_create: |_, set| {
        let mut warnings = template_warnings(set, None);
        stateful_set_warnings(set, |path| path, &mut warnings);
        warnings
    },
    warnings_on_update: |call, part, set, old| {
        if part != Part::Main {
            return Vec::new();
        }
        let mut warnings = template_update_warnings(call, part, set, old);
        // The reference says so in this case only.
        stateful_set_warnings(set, |path| format!("{path}.Spec"), &mut warnings);
        warnings
    },
    complete_blank: no_replicas,
    ..Kind::PLAIN
};

/// The number of replicas is optional in what clients send, and never absent in what the reference works with.
fn no_replicas(object: &mut Value) {
    object.set_at(&["spec", "replicas"], Value::Int(0));
}

const TEMPLATE: [&str; 2] = ["spec", "template"];

/// Whether a part of a DaemonSet will be stored as it is: what is empty is not told from what is absent then.
fn is_same_stored(set: &Value, old: &Value, path: &[&str]) -> bool {
    if set.at(path) == old.at(path) {
        return true;
    }
    let kind = GroupVersion::new("apps", "v1").with_kind("DaemonSet");
    let Some(schema) = builtin().kind_schema(&kind) else { return false };
    let mut stored = set.clone();
    canonicalize(&schema.table, &schema.root, &mut stored, Empties::Absent);
    stored.at(path) == old.at(path)
}

fn template_generation(set: &Value) -> i64 {
    set.meta().annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(set: &mut Value, generation: i64) {
    set.meta_mut().set_annotation(TEMPLATE_GENERATION, &generation.to_string());
}

/// Warnings about spec.template, if it has changed.
pub fn template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let path = Path::new("spec");
    let template = object.at(&TEMPLATE);
    template.map_or_else(Vec::new, |t| {
        pod_warnings::of_template(&path.child("template"), t, old.and_then(|o| o.at(&TEMPLATE)))
    })
}

/// Of kinds whose names become part of the names of pods.
pub fn named_template_warnings(object: &Value) -> Vec<String> {
    let mut warnings = name_warnings(object, IN_POD_NAMES);
    warnings.extend(template_warnings(object, None));
    warnings
}

/// Where the names of most controllers show up.
pub const IN_POD_NAMES: &str = "Pod names and hostnames";

/// A name that is used in `place` had better be a DNS label.
pub fn name_warnings(object: &Value, place: &str) -> Vec<String> {
    let problems = is_dns1123_label(object.meta().name());
    if problems.is_empty() {
        return Vec::new();
    }
    let problems: Vec<&str> = problems.iter().map(AsRef::as_ref).collect();
    vec![format!(
        "metadata.name: this is used in {place}, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        problems.join(" ")
    )]
}

/// Warnings about spec.template after an update that counts in metadata.generation.
pub fn template_update_warnings(_: &Call, part: Part<'_>, object: &Value, old: &Value) -> Vec<String> {
    let changed = object.meta().generation() != old.meta().generation();
    if part == Part::Main && changed { template_warnings(object, Some(old)) } else { Vec::new() }
}

fn stateful_set_warnings(set: &Value, locate: impl Fn(String) -> String, warnings: &mut Vec<String>) {
    let templates = set.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array).unwrap_or(&[]);
    for (i, claim) in templates.iter().enumerate() {
        let path = locate(format!("spec.volumeClaimTemplates[{i}]"));
        warnings.extend(pod_warnings::of_claim_spec(&path, claim.get("spec")));
    }
    if set.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_i64).is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .into(),
        );
    }
}
