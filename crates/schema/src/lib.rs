//! What is known of an API as data: the shape of its objects (`types`), the resources that serve them
//! (`descriptor`), and what follows from the shape alone: canonical form, defaults, pruning, validation.
//! Built-in resources (from the catalogue) and custom ones (from CustomResourceDefinitions) have the same
//! types here, and nothing above this crate asks which of the two it has.

pub mod canonical;
pub mod defaults;
pub mod descriptor;
pub mod fields;
#[cfg(feature = "structural")]
pub mod go_regexp;
pub mod jsonpath;
pub mod lifecycle;
#[cfg(feature = "structural")]
pub mod structural;
pub mod types;

pub use canonical::{Empties, Form, canonicalize};
pub use defaults::{Defaulting, apply_defaults};
pub use descriptor::*;
pub use fields::Fields;
pub use types::*;
