//! Workloads.

pub mod validate;

use kubelith_rules::Kind;
use kubelith_rules::gated::{Feature, feature};

pub const WORKLOAD: Kind = Kind {
    group: "scheduling.k8s.io",
    plural: "workloads",
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    ..Kind::PLAIN
};

const FEATURES: &[Feature] = &[
    feature(&["TopologyAwareWorkloadScheduling"], &["spec.podGroupTemplates[].schedulingConstraints"]),
    feature(&["DRAWorkloadResourceClaims"], &["spec.podGroupTemplates[].resourceClaims"]),
    feature(&["WorkloadAwarePreemption"], &["spec.podGroupTemplates[].disruptionMode"]),
    feature(&["WorkloadAwarePreemption"], &["spec.podGroupTemplates[].priorityClassName"]),
    feature(&["WorkloadAwarePreemption"], &["spec.podGroupTemplates[].priority"]),
];
