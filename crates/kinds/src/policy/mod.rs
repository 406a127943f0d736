//! The policy group.

pub mod pod_disruption_budget;
