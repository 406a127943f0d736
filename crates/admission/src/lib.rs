//! Admission: plugins that complete or refuse what is about to be written, in the order of kube-apiserver.
//!
//! `catalogue.rs` names every plugin in its place and says which run by default; `configuration.rs` reads the file that
//! some of them are configured by; `plugin.rs` says what a plugin is, `plugins/` has one file for each that is built in; `chain.rs` runs them.
//! `manifests` reads webhooks and policies from files. `webhooks` are those that ask other servers; `rules.rs`, `versioned.rs` and `expression.rs` say which requests are meant, in
//! which version, and under which conditions.

mod attributes;
mod catalogue;
mod chain;
mod config;
mod configuration;
mod expression;
mod loopback;
mod manifests;
mod matching;
mod observe;
mod plugin;
pub mod plugins;
mod policies;
mod rules;
mod versioned;
mod webhooks;

pub use catalogue::{Switches, build, is_known};
pub use chain::Chain;
pub use config::{Config, FindCustom, HookFactory, Reviewer};
pub use configuration::Configuration;
pub use loopback::Loopback;
pub use manifests::Manifests;
pub use observe::{
    CheckError, Decision, Evaluation, HookCall, HookFailure, Observer, Outcome, Phase, PolicyCheck, Power,
    SecurityMode, Severity, Span, Timer,
};
