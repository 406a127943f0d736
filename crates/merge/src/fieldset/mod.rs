//! Sets of fields: who owns what. A set is a tree of path elements; on the wire it is `fieldsV1`.

mod element;
mod filter;
mod outline;
mod outlines;
mod owned;
mod set;
#[cfg(test)]
mod tests;
pub(crate) mod values;
mod wire;
mod writer;

pub use element::{Path, PathElement};
pub use filter::{Filter, Matcher, Pattern};
pub(crate) use outline::Level;
pub use outlines::Outlines;
pub(crate) use owned::Owned;
pub use set::Set;
pub use wire::FieldsError;
pub(crate) use writer::{FieldsWriter, Mask, Masked, Name};
