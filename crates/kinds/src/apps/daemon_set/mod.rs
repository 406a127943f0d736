//! DaemonSets: they count changes of their template, in an annotation.

pub mod defaults;
pub mod validate;

use kubelith_catalog::builtin;
use kubelith_meta::{GroupVersion, Value};
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::template::{TEMPLATE, template_warnings};
use kubelith_rules::Kind;
use kubelith_rules::annotations::TEMPLATE_GENERATION;
use kubelith_schema::lifecycle::{Generation, Part};
use kubelith_schema::{Empties, canonicalize};

pub const DAEMON_SET: Kind = Kind {
    group: "apps",
    plural: "daemonsets",
    defaults: defaults::RULES,
    features: &[(&["spec", "template", "spec"], POD_FEATURES)],
    rules: validate::RULES,

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
