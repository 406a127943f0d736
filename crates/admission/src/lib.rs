//! Admission: plugins that complete or refuse what is about to be written, in the order of kube-apiserver.
//!
//! `catalogue.rs` names every plugin in its place and says which run by default; `configuration.rs` reads the file that
//! some of them are configured by; `plugin.rs` says what a plugin is, `plugins/` has one file for each that is built in; `chain.rs` runs them.

mod catalogue;
mod chain;
mod configuration;
mod loopback;
mod observe;
mod plugin;
pub mod plugins;

pub use catalogue::{Config, Known, Switches, build, known};
pub use chain::Chain;
pub use configuration::Configuration;
pub use loopback::Loopback;
pub use observe::{Decision, Evaluation, Observer, Outcome, Phase, SecurityMode, Timer};
