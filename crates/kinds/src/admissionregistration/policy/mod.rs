//! Admission policies, mutating and validating.

mod status;
pub mod validate;

use crate::admissionregistration::static_names::unlike_static;
use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::sealed::sealed;
use kubelith_schema::lifecycle::Generation;

pub const MUTATING_POLICY: Kind = unlike_static(
    Kind {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicies",
        rules: validate::MUTATING,
        ..Kind::PLAIN
    }
    .generation(Generation::Spec)
    .guarded(),
);

pub const VALIDATING_POLICY: Kind = unlike_static(sealed(
    Kind {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicies",
        rules: validate::VALIDATING,
        cells: CELLS,
        ..Kind::PLAIN
    }
    .generation(Generation::Spec)
    .guarded(),
));

pub const CELLS: Cells = &[("policy_param_kind", policy_param_kind)];

fn policy_param_kind(row: &Row<'_>) -> Option<Value> {
    let Some(kind) = row.at(&["spec", "paramKind"]) else { return Some("<unset>".into()) };
    Some(format!("{}/{}", kind.str_at(&["apiVersion"]), kind.str_at(&["kind"])).into())
}
