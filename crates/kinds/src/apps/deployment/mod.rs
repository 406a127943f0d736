//! Deployments.

pub mod defaults;
pub mod validate;

use crate::workload::no_replicas;
use kubelith_meta::{LabelSelector, Value};
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::template::{named_template_warnings, template_update_warnings};
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::gated::{Feature, feature};
use kubelith_schema::lifecycle::{Generation, Part};

pub const DEPLOYMENT: Kind = Kind {
    group: "apps",
    plural: "deployments",
    defaults: defaults::RULES,
    features: &[(&["spec", "template", "spec"], POD_FEATURES), (&[], TERMINATING)],
    rules: validate::RULES,
    cells: CELLS,

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

pub const TERMINATING: &[Feature] =
    &[feature(&["DeploymentReplicaSetTerminatingReplicas"], &["status.terminatingReplicas"])];

pub const CELLS: Cells = &[("deployment_selector", deployment_selector)];

/// Unlike other selectors, an empty one is an empty text.
fn deployment_selector(row: &Row<'_>) -> Option<Value> {
    let selector = LabelSelector::from_object(row.at(&["spec", "selector"]));
    Some(selector.map_or_else(|_| "<invalid>".to_owned(), |s| s.to_string()).into())
}
