//! Options of requests, parsed once and typed from then on.

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
