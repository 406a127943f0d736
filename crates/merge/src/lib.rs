//! Changing objects: JSON patch, merge patch, strategic merge patch, and server-side apply with the field
//! ownership behind it. Pure: values and schemas in, values and typed errors out.

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
