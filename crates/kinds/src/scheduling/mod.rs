//! scheduling.k8s.io

pub mod pod_group;
pub mod priority_class;
pub mod workload;
