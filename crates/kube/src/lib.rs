//! The built-in groups, served: what has effects. What a kind asks of its objects and does with them is in the crates `kinds` and `pods`.

pub mod actions;
pub mod bootstrap;
pub mod cells;
mod claims;
pub mod connect;
mod emulation;
mod escalation;
mod install;
mod issued;
mod params;
pub mod services;
mod signers;
pub mod strategies;

pub use emulation::Emulation;
pub use install::{Install, Installed, Plan, install};
pub use kubelith_registry::Resources;
