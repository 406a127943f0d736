//! StatefulSets.

pub mod defaults;
pub mod validate;

use crate::workload::no_replicas;
use kubelith_meta::Value;
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::template::{template_update_warnings, template_warnings};
use kubelith_pods::warnings;
use kubelith_rules::gated::{Feature, feature};
use kubelith_rules::{Kind, Switched};
use kubelith_schema::lifecycle::{Generation, Part};

pub const STATEFUL_SET: Kind = Kind {
    group: "apps",
    plural: "statefulsets",
    defaults: defaults::RULES,
    switched: &[Switched { gate: "MaxUnavailableStatefulSet", on: defaults::MAX_UNAVAILABLE, off: &[] }],
    features: &[(&["spec", "template", "spec"], POD_FEATURES), (&[], FEATURES)],
    rules: validate::RULES,

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

const FEATURES: &[Feature] =
    &[feature(&["MaxUnavailableStatefulSet"], &["spec.updateStrategy.rollingUpdate.maxUnavailable"])];

fn stateful_set_warnings(set: &Value, locate: impl Fn(String) -> String, warnings: &mut Vec<String>) {
    let templates = set.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array).unwrap_or(&[]);
    for (i, claim) in templates.iter().enumerate() {
        let path = locate(format!("spec.volumeClaimTemplates[{i}]"));
        warnings.extend(warnings::of_claim_spec(&path, claim.get("spec")));
    }
    if set.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_i64).is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .into(),
        );
    }
}
