//! Server-side apply on one object: who owns which fields, what an update or an apply does to that, and what is
//! merged and pruned.
//!
//! An *applier* says what it wants and owns exactly that; what it wanted last time and does not mention now is
//! removed, unless someone else owns it. An *updater* owns what it changed. An applier that would change a value which
//! someone else owns gets a conflict unless it insists.

mod conflict;
mod owners;
mod prune;
#[cfg(test)]
mod tests;
mod updater;
mod versions;

pub use conflict::{Conflict, Conflicts};
pub use owners::{ManagerId, Operation, Owner, Owners};
pub use updater::{Applied, Force, UpdateError, Updater, Wanted};
pub use versions::{ConvertError, Versions};
