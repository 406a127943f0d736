//! The ways out of this server: straight, or through a proxy that can reach what this server cannot
//! (`--egress-selector-config-file`).

mod config;
mod connect;
mod konnectivity;

pub use config::{Destination, Egress};
pub(crate) use connect::Duplex;
pub use connect::{Connection, DialObserver, Reason, Route, Segment, Stage, State, Way};
