//! Pods: what is asked of them, what the server sets and fills in, what it warns about and shows. Also of their templates, which
//! the kinds that make pods have.

pub mod cells;
pub mod claim;
pub mod defaults;
pub mod gated;
mod kind;
pub mod prepare;
pub mod template;
pub mod validate;
pub mod warnings;

pub use kind::POD;
pub use validate::qos_class;
