//! Managers and what they own.

use crate::fieldset::{Owned, Set};
use kubelith_meta::{Str, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// All managers of an object.
pub type Owners = BTreeMap<ManagerId, Owner>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

/// What tells one `managedFields` entry from another. The same name can apply and update, update in several versions
/// and write through several subresources; each of these is a manager of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerId {
    pub manager: Str,
    pub operation: Operation,
    /// Empty for appliers: they have one entry, whatever version they apply in.
    pub api_version: Str,
    /// Empty for the resource itself.
    pub subresource: Str,
}

/// What a manager owns.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The `apiVersion` that the fields are named in.
    pub version: Str,
    pub operation: Operation,
    fields: Owned,
    /// The set before: what an applier owns often turns out to be the same.
    former: Option<Box<Owned>>,
    /// When the manager last changed something.
    pub time: Option<Str>,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

impl ManagerId {
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> ManagerId {
        let api_version = match operation {
            Operation::Apply => Str::default(),
            Operation::Update => Str::from(api_version),
        };
        ManagerId { manager: Str::from(manager), operation, api_version, subresource: Str::from(subresource) }
    }
}

/// The order of the JSON texts that the reference has for identifiers, which shows in messages: a name ends with a
/// quote, and an identifier goes on with a comma if it has a subresource, with a brace if not.
impl Ord for ManagerId {
    fn cmp(&self, other: &ManagerId) -> Ordering {
        let by_text = |a: &Str, b: &Str| a.bytes().chain([b'"']).cmp(b.bytes().chain([b'"']));
        by_text(&self.manager, &other.manager)
            .then(self.operation.cmp(&other.operation))
            .then_with(|| by_text(&self.api_version, &other.api_version))
            .then_with(|| self.subresource.is_empty().cmp(&other.subresource.is_empty()))
            .then_with(|| by_text(&self.subresource, &other.subresource))
    }
}

impl PartialOrd for ManagerId {
    fn partial_cmp(&self, other: &ManagerId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Owner {
    pub fn new(version: Str, operation: Operation, set: Set) -> Owner {
        Owner::of(version, operation, set.into())
    }

    pub(crate) fn of(version: Str, operation: Operation, fields: Owned) -> Owner {
        Owner { version, operation, fields, former: None, time: None }
    }

    /// What an applier owns after another apply. Its time is that of the last change until something changes.
    pub(super) fn renewed(last: Option<Owner>, version: &str, set: Set) -> Owner {
        let mut owner = Owner::new(Str::from(version), Operation::Apply, set);
        if let Some(last) = last {
            owner.time = last.time;
            owner.former = last.fields.wire().is_some().then(|| Box::new(last.fields));
        }
        owner
    }

    /// The set as `fieldsV1`.
    pub(crate) fn into_fields(self) -> Value {
        match self.former {
            Some(former) if former.set() == self.fields.set() => former.into_fields(),
            _ => self.fields.into_fields(),
        }
    }

    pub fn set(&self) -> &Set {
        self.fields.set()
    }

    pub(crate) fn fields(&self) -> &Owned {
        &self.fields
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Takes fields away.
    pub(crate) fn lose(&mut self, fields: &Set) {
        self.fields.lose(fields);
    }

    /// Adds fields.
    pub(crate) fn gain(&mut self, fields: Set) {
        self.fields.gain(fields);
    }

    pub(crate) fn replace_set(&mut self, set: Set) {
        self.fields = set.into();
    }
}
