//! The built-in groups: what their kinds do beyond what the catalogue says.
//!
//! A newcomer finds a kind's behaviour in `strategies/<group>/<kind>.rs`, its defaults in `defaults/` and the cells of
//! its table in `cells/`, both by concept. A kind that appears in none of them has no behaviour of its own.

pub mod actions;
pub mod annotations;
pub mod bootstrap;
pub mod cells;
mod claims;
pub mod connect;
pub mod defaults;
mod emulation;
mod escalation;
mod gated;
mod install;
mod params;
pub mod services;
mod signers;
pub mod strategies;

pub use emulation::Emulation;
pub use install::{Install, Installed, install};
pub use kubelith_registry::Resources;
