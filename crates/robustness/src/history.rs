//! What is recorded: operations with their answers and times, and what watches delivered.

/// A resourceVersion.
pub type Revision = i64;
/// Microseconds since the run began.
pub type Moment = u64;
/// Which operation wrote an object last; unique in a run, and part of the object.
pub type Mark = u64;

/// An object, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub name: String,
    pub revision: Revision,
    pub uid: String,
    pub mark: Mark,
    /// A label, by which some watches and lists select.
    pub color: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// No resourceVersion: all that was acknowledged before.
    Consistent,
    /// resourceVersion=0: whatever there is.
    Any,
    NotOlderThan(Revision),
    Exact(Revision),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Create {
        name: String,
        mark: Mark,
    },
    /// PUT with a resourceVersion.
    Update {
        name: String,
        mark: Mark,
        after: Revision,
    },
    /// A merge patch, with a resourceVersion or without.
    Patch {
        name: String,
        mark: Mark,
        after: Option<Revision>,
    },
    /// Creates what is missing.
    Apply {
        name: String,
        mark: Mark,
    },
    Delete {
        name: String,
        after: Option<Revision>,
    },
    Get {
        name: String,
        fresh: Freshness,
    },
    List {
        fresh: Freshness,
        color: Option<u8>,
    },
}

impl Call {
    pub fn name(&self) -> Option<&str> {
        match self {
            Call::Create { name, .. }
            | Call::Update { name, .. }
            | Call::Patch { name, .. }
            | Call::Apply { name, .. }
            | Call::Delete { name, .. }
            | Call::Get { name, .. } => Some(name),
            Call::List { .. } => None,
        }
    }

    /// The mark that a write leaves.
    pub fn mark(&self) -> Option<Mark> {
        match self {
            Call::Create { mark, .. }
            | Call::Update { mark, .. }
            | Call::Patch { mark, .. }
            | Call::Apply { mark, .. } => Some(*mark),
            _ => None,
        }
    }

    pub fn is_write(&self) -> bool {
        self.mark().is_some() || matches!(self, Call::Delete { .. })
    }
}

/// A page of a list, with the revision that it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub revision: Revision,
    pub items: Vec<Version>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The object, as it is after a write or as it was read.
    Object(Version),
    /// The object with this uid.
    Deleted {
        uid: String,
    },
    Pages(Vec<Page>),
    /// Certainly without effect.
    Refused(u16),
    /// No answer, or one that leaves open whether it was done (5xx).
    Unknown,
}

#[derive(Debug, Clone)]
pub struct Operation {
    /// Which of the watched resources.
    pub resource: usize,
    pub start: Moment,
    pub end: Moment,
    pub call: Call,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Change(Change, Version),
    Bookmark(Revision),
    /// The bookmark after the initial events.
    InitialEnd(Revision),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    After(Revision),
    /// sendInitialEvents: first all there is.
    Initial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By time, by the server, or by a fault: what comes after the last notice is not known.
    Cut,
    /// 410: the history is not there any more.
    Gone,
    /// Anything else that was said.
    Error(String),
}

/// One watch request, from its start to its end.
#[derive(Debug, Clone)]
pub struct Watched {
    pub resource: usize,
    pub watcher: usize,
    pub start: Moment,
    pub begin: Begin,
    pub color: Option<u8>,
    pub notices: Vec<Notice>,
    pub end: End,
}

/// All of a run.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// By resource: the revision at which it was empty, before the first operation.
    pub bases: Vec<Revision>,
    pub operations: Vec<Operation>,
    pub watched: Vec<Watched>,
    /// By resource: the revision of the very last write. Watches must have come so far.
    pub finals: Vec<Revision>,
}
