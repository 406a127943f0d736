//! The core group.

pub mod namespace;
pub mod objects;
pub mod pod;
mod pod_parts;
mod pod_prepare;
pub mod storage;
mod tls;
