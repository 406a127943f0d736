//! The controllers of definitions: status (names, established, approval), publishing in discovery and OpenAPI, and the
//! deletion of instances before a definition goes.

pub mod conditions;
mod finalize;
mod index;
mod publish;
mod status;

pub use finalize::finalizer;
pub use index::{Index, Known};
pub use publish::Publisher;
pub use status::StatusController;
