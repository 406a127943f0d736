//! The core group.

pub mod namespace;
pub mod objects;
pub mod pod;
pub mod storage;
mod tls;
mod pod_parts;
