//! ReplicaSets.

pub mod validate;

use crate::apps::deployment::TERMINATING;
use crate::workload::no_replicas;
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::template::{named_template_warnings, template_update_warnings};
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::Generation;

pub const REPLICA_SET: Kind = Kind {
    group: "apps",
    plural: "replicasets",
    features: &[(&["spec", "template", "spec"], POD_FEATURES), (&[], TERMINATING)],
    rules: validate::RULES,

    generation: Generation::Spec,
    warnings_on_create: |_, set| named_template_warnings(set),
    warnings_on_update: template_update_warnings,
    complete_blank: no_replicas,
    ..Kind::PLAIN
};
