//! The words every other crate speaks: JSON-like values, group/version/kind, object metadata, Status,
//! selectors, quantities, times and names. Pure: no I/O, no global state; the time comes
//! through a [`Clock`] that callers are handed.

pub mod address;
pub mod call;
pub mod field;
pub mod gvk;
pub mod intstr;
pub mod keys;
mod members;
pub mod names;
pub mod object;
pub mod quantity;
pub mod quick_hash;
pub mod random;
mod sealed;
pub mod selector;
pub mod status;
pub mod text;
pub mod time;
pub mod url;
pub mod user;
pub mod value;
pub mod when_asked;
pub mod words;

pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use intstr::IntOrString;
pub use keys::{Head, Key};
pub use object::ObjectMeta;
pub use quantity::Quantity;
pub use sealed::ReadEntries;
pub use selector::{FieldSelector, LabelSelector};
pub use status::Status;
pub use time::{Clock, Duration, Time};
pub use value::{Map, Str, Value};
