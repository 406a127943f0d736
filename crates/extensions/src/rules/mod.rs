//! `x-kubernetes-validations`: rules in CEL that the objects of a custom resource must fulfil.
//!
//! `compile` makes programs of the rules of one schema, for definitions that are written (`validation/rules.rs` reports
//! what is wrong with them) and for those that are served. `tree` holds the programs of all schemas in a schema, `check`
//! runs them over an object.

mod check;
mod compile;
pub mod field_path;
mod rule;
mod tree;

pub use check::Budget;
pub use compile::{Compiled, Known, compile, declare, environment};
pub use rule::Rule;
pub use tree::RuleTree;

/// The most that all rules together may cost for one object.
pub const OBJECT_LIMIT: u64 = 10_000_000;
