//! LeaseCandidates.

pub mod validate;

use kubelith_rules::Kind;

pub const LEASE_CANDIDATE: Kind =
    Kind { group: "coordination.k8s.io", plural: "leasecandidates", rules: validate::RULES, ..Kind::PLAIN }
        .upserts()
        .guarded();
