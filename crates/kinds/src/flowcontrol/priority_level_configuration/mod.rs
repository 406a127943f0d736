//! PriorityLevelConfigurations.

pub mod validate;

use kubelith_rules::Kind;
use kubelith_rules::sealed::status_only;
use kubelith_schema::lifecycle::Generation;

pub const PRIORITY_LEVEL: Kind = status_only(
    Kind {
        group: "flowcontrol.apiserver.k8s.io",
        plural: "prioritylevelconfigurations",
        rules: validate::RULES,
        ..Kind::PLAIN
    }
    .generation(Generation::Spec),
);
