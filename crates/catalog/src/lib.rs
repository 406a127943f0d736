//! Every built-in API as data: `api/*.api` are texts for people, compiled by the build script into bytes that
//! load within a few milliseconds. Nothing here knows behaviour; conversion between versions is the one thing
//! that data does not say.

mod api;
mod catalog;
mod convert;
mod decode;
#[cfg(any(test, feature = "texts"))]
mod encode;
#[cfg(any(test, feature = "texts"))]
mod model;
mod reader;
mod runtime_config;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "texts"))]
mod text;
#[cfg(any(test, feature = "texts"))]
mod wire;

pub use api::{Api, Serve};
pub use catalog::{Catalog, Gate, builtin};
pub use convert::{ConvertError, convert, definition_from_v1, is_same_kind, normalize, stored_label};
pub use runtime_config::RuntimeConfig;
