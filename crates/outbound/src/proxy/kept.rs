//! How well transports are shared: whoever needs one gets a kept one, if there is one to the same servers with the same trust.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of those who needed a transport.
#[derive(Debug, Default)]
pub struct TransportCounts {
    hits: AtomicU64,
    misses: AtomicU64,
    kept: AtomicU64,
}

impl TransportCounts {
    /// A kept one did.
    pub fn found(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// One was made, and is kept as long as what this answers.
    pub fn made(self: &Arc<Self>) -> KeptTransport {
        self.misses.fetch_add(1, Ordering::Relaxed);
        self.kept.fetch_add(1, Ordering::Relaxed);
        KeptTransport(self.clone())
    }

    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }
}

/// Counts as a kept transport until it is dropped.
#[derive(Debug)]
pub struct KeptTransport(Arc<TransportCounts>);

impl Drop for KeptTransport {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::Relaxed);
    }
}
