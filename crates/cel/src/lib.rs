//! The Common Expression Language as Kubernetes has it: parser, type checker, both cost models, evaluator and libraries.
//! Pure: no I/O, no globals; what an expression may ask the server (an authorizer's decision) comes through a trait.
//!
//! ```text
//! text ── parse ──> Ast ── check (Env: variables, functions, declared types) ──> Checked ── plan ──> Program ── eval ──> value, cost
//!                                                                                  └──── estimate ──> least and greatest cost
//! ```
//!
//! An expression is compiled once, against what it may name, and run often:
//!
//! ```
//! use kubelith_cel::{Env, Program, Type, Val};
//! use kubelith_meta::Value;
//!
//! let env = Env::base().variable("object", Type::Dyn);
//! let checked = env.compile("object.replicas <= 5 && object.name.startsWith('web-')").expect("it compiles");
//! let program = Program::new(&env, &checked).expect("it can be planned");
//!
//! let object = Value::from([("replicas", Value::from(3)), ("name", Value::from("web-1"))]);
//! let variables = [Val::json(&object)];
//! let (result, cost) = program.eval(&variables);
//! assert!(matches!(result, Ok(Val::Bool(true))));
//! assert!(cost > 0);
//!
//! let issues = env.compile("object.replicas <= 'five' +").expect_err("that is no expression");
//! assert!(issues.to_string().contains("Syntax error"));
//! ```
//!
//! With a schema instead of `Type::Dyn` ([`Declared`], [`Env::declare`]) types are checked, and [`estimate`] tells what an
//! expression may cost at most, as kube-apiserver does before it takes a rule.

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
