//! Changing objects: JSON patch, merge patch, strategic merge patch, and server-side apply with the field
//! ownership behind it. Pure: values and schemas in, values and typed errors out.
//!
//! | | |
//! |---|---|
//! | [`json_patch`] | RFC 6902, as laxly as kube-apiserver takes it |
//! | [`merge_patch`] | RFC 7386 |
//! | [`strategic`] | strategic merge patch: lists are merged by the keys that the schema names |
//! | [`apply`] | server-side apply on one object: who owns which fields, conflicts, what is pruned |
//! | [`managers`] | the same on API objects, with `managedFields` read and written |
//! | [`fieldset`] | sets of fields, and their JSON (`fieldsV1`) |
//! | [`typed`] | objects compared and merged as their schema means them |
//!
//! ```
//! use kubelith_merge::merge_patch;
//! use kubelith_meta::Value;
//!
//! let mut object = Value::from([("color", "red"), ("size", "large")]);
//! let patch = Value::from([("color", Value::from("blue")), ("size", Value::Null)]);
//! merge_patch::apply(&mut object, patch).expect("both are objects");
//! assert_eq!(object, Value::from([("color", "blue")]));
//! ```

pub mod apply;
#[cfg(test)]
mod catalogue_tests;
pub mod error;
pub mod fieldset;
mod go_text;
mod json;
pub mod json_patch;
pub mod managers;
pub mod merge_patch;
pub mod strategic;
#[cfg(test)]
mod testing;
pub mod typed;

pub use error::PatchError;
pub use go_text::go_value;
