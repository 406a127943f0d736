//! Options of requests, parsed once and typed from then on.

use kubelith_meta::Str;

/// Which state a read wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAt {
    /// Everything acknowledged before the request: no resourceVersion.
    Latest,
    /// Whatever is at hand: `resourceVersion=0`.
    AnyAge,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exact(u64),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub uid: Option<Str>,
    pub resource_version: Option<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub preconditions: Preconditions,
    pub orphan_dependents: Option<bool>,
    pub propagation: Option<Propagation>,
    /// Delete even what cannot be read: `ignoreStoreReadErrorWithClusterBreakingPotential`.
    pub ignore_read_error: bool,
}
