//! What a load led to.

use crate::process::Usage;
use std::time::Duration;

/// What the clients of a load saw.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Of each operation.
    pub latencies: Vec<Duration>,
    pub failures: usize,
    pub bytes: usize,
    pub elapsed: Duration,
    /// What the server had used before and after, if that is not all of the load.
    pub usage: Option<(Usage, Usage)>,
    /// What else is to be said.
    pub note: String,
    /// Of loads that have watchers.
    pub crowd: Option<Gathered>,
}

/// Resident memory of the server beside its watchers.
#[derive(Debug, Clone, Copy)]
pub struct Gathered {
    pub watchers: usize,
    /// Before the first one came.
    pub without: u64,
    /// When all were there, and before the first write.
    pub silent: u64,
    /// When all had seen the last write.
    pub after: u64,
}

impl Gathered {
    /// Bytes for each watcher.
    pub fn each(self, resident: u64) -> u64 {
        resident.saturating_sub(self.without) / self.watchers.max(1) as u64
    }
}
