//! Managers and what they own.

use crate::fieldset::Set;
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
    pub(crate) set: Set,
    /// `fieldsV1` as it was read, as long as the set is what it was. Most entries leave a request as they came, and are
    /// not written anew.
    pub(crate) wire: Option<Value>,
    /// The set before and how it was read: what an applier owns often turns out to be the same.
    former: Option<Box<(Set, Value)>>,
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
        Owner { version, operation, set, wire: None, former: None, time: None }
    }

    /// What an applier owns after another apply. Its time is that of the last change until something changes.
    pub(super) fn renewed(last: Option<Owner>, version: &str, set: Set) -> Owner {
        let mut owner = Owner::new(Str::from(version), Operation::Apply, set);
        if let Some(last) = last {
            owner.time = last.time;
            owner.former = last.wire.map(|wire| Box::new((last.set, wire)));
        }
        owner
    }

    /// The set as `fieldsV1`.
    pub(crate) fn into_fields(self) -> Value {
        match (self.wire, self.former) {
            (Some(wire), _) => wire,
            (None, Some(former)) if former.0 == self.set => former.1,
            _ => self.set.to_fields(),
        }
    }

    pub fn set(&self) -> &Set {
        &self.set
    }

    /// Takes fields away.
    pub(crate) fn lose(&mut self, fields: &Set) {
        if !self.set.is_disjoint(fields) {
            self.set.remove(fields);
            self.wire = None;
        }
    }

    /// Adds fields.
    pub(crate) fn gain(&mut self, fields: Set) {
        // Who writes a field again owns it already.
        if !fields.is_subset(&self.set) {
            self.set.add(fields);
            self.wire = None;
        }
    }

    pub(crate) fn replace_set(&mut self, set: Set) {
        self.set = set;
        self.wire = None;
    }
}
