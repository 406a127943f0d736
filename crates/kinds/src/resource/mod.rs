//! resource.k8s.io

pub mod device_class;
pub mod device_taint_rule;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_pool_status_request;
pub mod resource_slice;
pub mod shared;
#[cfg(test)]
mod tests;
