//! What others can see of the server's work: metrics, spans, the log of the program and the audit log.

pub mod audit;
pub mod logging;
pub mod metrics;
pub mod recent;
pub mod spans;
