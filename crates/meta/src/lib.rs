//! The words every other crate speaks: JSON-like values, group/version/kind, object metadata, Status,
//! selectors, quantities, times and names. Pure: no I/O, no clock, no global state.

pub mod gvk;
pub mod value;

pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use value::{Map, Str, Value};
