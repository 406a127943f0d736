//! Leases.

pub mod validate;

use kubelith_rules::Kind;
use kubelith_rules::gated::{Feature, feature};

pub const LEASE: Kind = Kind {
    group: "coordination.k8s.io",
    plural: "leases",
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    ..Kind::PLAIN
}
.upserts()
.guarded();

const FEATURES: &[Feature] = &[
    feature(&["CoordinatedLeaderElection"], &["spec.strategy"]),
    feature(&["CoordinatedLeaderElection"], &["spec.preferredHolder"]),
];
