//! Admission policies: rules in CEL that are objects themselves, bound to requests by other objects.
//!
//! `policy.rs` is one policy, read and compiled once; `source.rs` keeps all with their bindings as they are stored; `params.rs`
//! finds what bindings hand to the expressions; `parts.rs` is what both kinds share; `validating.rs` judges requests by them, `mutating.rs` changes objects.

mod mutating;
mod params;
mod parts;
mod policy;
mod source;
mod validating;

pub use mutating::MutatingAdmissionPolicy;
pub use validating::ValidatingAdmissionPolicy;
