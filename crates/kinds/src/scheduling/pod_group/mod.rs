//! PodGroups.

pub mod validate;

use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row, holds};
use kubelith_rules::gated::{Feature, feature};
use kubelith_rules::sealed::sealed;

pub const POD_GROUP: Kind = sealed(Kind {
    group: "scheduling.k8s.io",
    plural: "podgroups",
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    cells: CELLS,
    ..Kind::PLAIN
});

const FEATURES: &[Feature] = &[
    feature(&["TopologyAwareWorkloadScheduling"], &["spec.schedulingConstraints"]),
    feature(&["DRAWorkloadResourceClaims"], &["spec.resourceClaims"]),
    feature(&["WorkloadAwarePreemption"], &["spec.disruptionMode"]),
    feature(&["WorkloadAwarePreemption"], &["spec.priorityClassName"]),
    feature(&["WorkloadAwarePreemption"], &["spec.priority"]),
    feature(&["DRAWorkloadResourceClaims"], &["status.resourceClaimStatuses"]).kept_by(&["spec.resourceClaims"]),
];

pub const CELLS: Cells = &[("pod_group_policy", pod_group_policy), ("pod_group_status", pod_group_status)];

fn pod_group_policy(row: &Row<'_>) -> Option<Value> {
    let is_gang = row.at(&["spec", "schedulingPolicy", "gang"]).is_some();
    Some(if is_gang { "Gang" } else { "Basic" }.into())
}

fn pod_group_status(row: &Row<'_>) -> Option<Value> {
    // The last condition of a type counts.
    let last = |kind| row.conditions().iter().rfind(|c| c.str_at(&["type"]) == kind);
    let status = match (last("DisruptionTarget"), last("PodGroupScheduled")) {
        (Some(disrupted), _) => disrupted.str_at(&["reason"]),
        (None, Some(scheduled)) if holds(scheduled) => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    };
    Some(status.into())
}
