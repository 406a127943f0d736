//! ReplicationControllers.

pub mod defaults;
pub mod validate;

use kubelith_meta::call::Call;
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::template::{named_template_warnings, template_update_warnings};
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::{GarbageCollection, Generation};

pub const REPLICATION_CONTROLLER: Kind = Kind {
    group: "",
    plural: "replicationcontrollers",
    defaults: defaults::RULES,
    features: &[(&["spec", "template", "spec"], POD_FEATURES)],
    rules: validate::RULES,

    generation: Generation::Spec,
    garbage_collection: GarbageCollection::OrphanDependents,
    warnings_on_create: |_, controller| named_template_warnings(controller),
    // The reference takes the two for each other here: what warns is the template that goes.
    warnings_on_update: |call: &Call, part, controller, old| template_update_warnings(call, part, old, controller),
    ..Kind::PLAIN
};
