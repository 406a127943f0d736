//! The Common Expression Language as Kubernetes has it: parser, type checker, both cost models, evaluator and libraries.
//! Pure: no I/O, no globals; what an expression may ask the server (an authorizer's decision) comes through a trait.
//!
//! ```text
//! text ── parse ──> Ast ── check (Env: variables, functions, declared types) ──> Checked ── plan ──> Program ── eval ──> value, cost
//!                                                                                  └──── estimate ──> least and greatest cost
//! ```

pub mod admission;
pub mod ast;
mod check;
pub mod cost;
pub mod decl;
pub mod declared;
pub mod device;
pub mod env;
pub mod error;
pub mod escape;
pub mod estimate;
pub mod eval;
pub mod libraries;
mod messages;
pub mod parse;
mod plan;
pub mod print;
pub mod program;
mod stack;
pub mod types;
pub mod value;
mod wellknown;

pub use ast::{Ast, Checked, ExprId};
pub use declared::Declared;
pub use env::Env;
pub use error::Issues;
pub use eval::Activation;
pub use program::Program;
pub use types::Type;
pub use value::{EvalError, Val};
