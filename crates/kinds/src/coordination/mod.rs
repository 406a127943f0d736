//! coordination.k8s.io

pub mod lease;
pub mod lease_candidate;
pub mod shared;
#[cfg(test)]
mod tests;
