//! Annotations that stand for fields. The reference has these fields in its internal form only.

/// Of DaemonSets: how often the template changed.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Of Deployments: the revision to go back to.
pub const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// Of autoscalers: what version 1 has no fields for.
pub const AUTOSCALER: [&str; 6] = [
    "autoscaling.alpha.kubernetes.io/behavior",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/metrics",
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
