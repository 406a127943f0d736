//! Where a watch begins, as its options ask.

use crate::options::{ListOptions, parse_revision};
use kubelith_meta::Status;
use kubelith_registry::ReadAt;

/// Whether a watch says that its initial events are all there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InitialEnd {
    Told,
    /// The old paths with `watch` in them know nothing of it.
    Untold,
}

pub(super) enum Start {
    /// All objects as ADDED, in a state as new as this, then the changes.
    Initial(ReadAt, InitialEnd),
    /// The changes from now on.
    Now,
    /// The changes after a revision.
    After(i64),
}

impl Start {
    pub(super) fn of(options: &ListOptions) -> Result<Start, Status> {
        let version = options.resource_version.as_str();
        let revision = match version {
            "" | "0" => 0,
            text => parse_revision(text).map_err(Status::unknown)?,
        };
        Ok(match (options.send_initial_events, version) {
            (Some(true), "") => Start::Initial(ReadAt::Latest, InitialEnd::Told),
            (Some(true), "0") => Start::Initial(ReadAt::AnyAge, InitialEnd::Told),
            (Some(true), _) => Start::Initial(ReadAt::NotOlderThan(revision), InitialEnd::Told),
            // A path with `watch` in it, and no such parameter.
            (None, "") => Start::Initial(ReadAt::Latest, InitialEnd::Untold),
            (None, "0") => Start::Initial(ReadAt::AnyAge, InitialEnd::Untold),
            (Some(false), "" | "0") => Start::Now,
            // What no store can reach is a future like any other.
            _ => Start::After(i64::try_from(revision).unwrap_or(i64::MAX)),
        })
    }
}
