//! Configurations of webhooks, mutating and validating.

pub mod validate;

use crate::admissionregistration::static_names::unlike_static;
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::Generation;

pub const MUTATING_WEBHOOK: Kind = unlike_static(
    Kind {
        group: "admissionregistration.k8s.io",
        plural: "mutatingwebhookconfigurations",
        rules: validate::RULES,
        ..Kind::PLAIN
    }
    .generation(Generation::ExactMember("webhooks"))
    .guarded(),
);

pub const VALIDATING_WEBHOOK: Kind = unlike_static(
    Kind {
        group: "admissionregistration.k8s.io",
        plural: "validatingwebhookconfigurations",
        rules: validate::RULES,
        ..Kind::PLAIN
    }
    .generation(Generation::ExactMember("webhooks"))
    .guarded(),
);
