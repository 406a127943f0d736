//! admissionregistration.k8s.io

pub mod binding;
pub mod policy;
pub mod rule;
pub mod shared;
pub mod static_names;
#[cfg(test)]
mod tests;
pub mod webhook;
