//! What the rules of built-in kinds are made of: the type of a kind, what rules may know of the server and of the request, and
//! what many of them share. Pure: values in, values and errors out.
//!
//! Rules collect every violation with its path, in the reference's order. Maps are checked in the order of their keys, which is
//! random there.

pub mod annotations;
pub mod cells;
pub mod common;
pub mod declared;
pub mod defaults;
mod env;
pub mod expression;
pub mod gated;
pub mod internal;
mod kind;
mod request;
pub mod resources;
pub mod sealed;
mod seen;
pub mod semver;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod values;
pub mod webhook;
pub mod x509;

pub use env::{Env, Features};
pub use kind::{Kind, Switched};
pub use request::{OnCreate, OnUpdate, Request, Rules};
pub use seen::Seen;
