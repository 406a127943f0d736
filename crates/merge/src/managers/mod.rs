//! `metadata.managedFields`: reading it, keeping it up to date on every write, and server-side apply on whole objects.
//!
//! A write goes through these steps (the reference has a chain of managers, outermost first): version check ·
//! last-applied annotation · tracking starts only at creation or at the first apply · at most ten updaters · the
//! manager's identifier · times · identity fields are nobody's · ownership.

mod creations;
mod entries;
mod field_manager;
mod last_applied;
mod names;
mod scale;
#[cfg(test)]
mod tests;
mod timestamps;
mod validation;

pub use creations::Creations;
pub use entries::{Managed, ManagedFieldsError};
pub use field_manager::{ApplyError, ApplyOutcome, FieldManager};
pub use last_applied::LAST_APPLIED_ANNOTATION;
pub use names::{FIELD_MANAGER_MAX_LENGTH, describe, manager_or_user_agent};
pub use scale::ScaleHandler;
pub use timestamps::revert_unchanged_timestamps;
pub use validation::{MAX_SUBRESOURCE_NAME_LENGTH, validate_field_manager, validate_managed_fields};
