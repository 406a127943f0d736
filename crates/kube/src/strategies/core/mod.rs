//! The core group.

pub mod namespace;
pub mod pod;
mod pod_parts;
