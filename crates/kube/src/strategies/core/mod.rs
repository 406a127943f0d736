//! The core group.

pub mod namespace;
pub mod objects;
pub mod pod;
mod pod_parts;
pub mod storage;
mod tls;
