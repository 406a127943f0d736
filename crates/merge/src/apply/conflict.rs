//! Conflicts between what is applied and what others own, and how they are reported.

use super::{ManagerId, Operation};
use crate::fieldset::{Path, Set};
use kubelith_meta::status::{CAUSE_FIELD_MANAGER_CONFLICT, Cause};
use kubelith_meta::text::Quoted;
use kubelith_meta::{Status, Str};
use std::fmt;

/// One field that someone else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub manager: ManagerId,
    pub path: Path,
}

/// All conflicts of an apply, those of one manager together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    pub(super) fn of<'a>(sets: impl IntoIterator<Item = (&'a ManagerId, &'a Set)>) -> Conflicts {
        let one = |(manager, set): (&'a ManagerId, &'a Set)| {
            set.paths().into_iter().map(|path| Conflict { manager: manager.clone(), path })
        };
        Conflicts(sets.into_iter().flat_map(one).collect())
    }

    /// The fields that are in conflict with anybody.
    pub fn fields(&self) -> Set {
        let mut set = Set::new();
        self.0.iter().for_each(|c| set.insert(&c.path));
        set
    }

    /// One cause per conflict.
    pub fn causes(&self) -> Vec<Cause> {
        let cause = |c: &Conflict| {
            let message = format!("conflict with {}", c.manager);
            Cause::new(CAUSE_FIELD_MANAGER_CONFLICT, message, Str::from(c.path.to_string()))
        };
        self.0.iter().map(cause).collect()
    }
}

/// `Apply failed with 1 conflict: conflict with "m" using apps/v1: .spec.replicas`; several are listed by manager.
impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Conflict { manager, path }] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last = None;
        for Conflict { manager, path } in &self.0 {
            if last != Some(manager) {
                let line_end = if last.is_some() { "\n" } else { "" };
                write!(f, "{line_end}conflicts with {manager}:")?;
                last = Some(manager);
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}

impl From<Conflicts> for Status {
    fn from(conflicts: Conflicts) -> Status {
        Status::apply_conflict(conflicts.causes(), conflicts.to_string())
    }
}

/// `"kubelet" with subresource "status" using v1`; appliers have no version.
impl fmt::Display for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Quoted(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", Quoted(&self.subresource))?;
        }
        match self.operation {
            Operation::Update => write!(f, " using {}", self.api_version),
            Operation::Apply => Ok(()),
        }
    }
}
