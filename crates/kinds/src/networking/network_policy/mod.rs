//! NetworkPolicies.

pub mod validate;

use kubelith_meta::Map;
use kubelith_rules::Kind;
use kubelith_rules::defaults::{Defaults, is_zero};
use kubelith_schema::lifecycle::Generation;

pub const NETWORK_POLICY: Kind = Kind {
    group: "networking.k8s.io",
    plural: "networkpolicies",
    defaults: DEFAULTS,
    rules: validate::RULES,
    ..Kind::PLAIN
}
.generation(Generation::ExactMember("spec"));

pub const DEFAULTS: Defaults = &[("io.k8s.api.networking.v1.NetworkPolicySpec", policy_types)];

/// A policy is about ingress, and about egress if it has rules for it.
fn policy_types(spec: &mut Map) {
    if is_zero(spec, "policyTypes") {
        let types = if is_zero(spec, "egress") { vec!["Ingress"] } else { vec!["Ingress", "Egress"] };
        spec.insert("policyTypes", types);
    }
}
