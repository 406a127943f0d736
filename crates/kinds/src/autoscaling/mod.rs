//! The autoscaling group.

pub mod horizontal_pod_autoscaler;
