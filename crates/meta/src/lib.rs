//! The words every other crate speaks: JSON-like values, group/version/kind, object metadata, Status,
//! selectors, quantities, times and names. Pure: no I/O, no clock, no global state.

pub mod field;
pub mod gvk;
pub mod names;
pub mod selector;
pub mod status;
pub mod text;
pub mod value;

pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use selector::{FieldSelector, LabelSelector};
pub use status::Status;
pub use value::{Map, Str, Value};
