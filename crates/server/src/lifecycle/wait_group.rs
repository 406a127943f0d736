//! Counts what is under way, refuses more once closed, and tells when all is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The highest bit says closed, the others count.
const CLOSED: usize = 1 << (usize::BITS - 1);

#[derive(Debug, Clone, Default)]
pub struct WaitGroup {
    state: Arc<WaitState>,
}

#[derive(Debug, Default)]
struct WaitState {
    count: AtomicUsize,
    empty: Notify,
}

/// One member; leaves when dropped.
#[derive(Debug)]
pub struct Member {
    state: Arc<WaitState>,
}

impl WaitGroup {
    /// `None` once the group is closed.
    pub fn join(&self) -> Option<Member> {
        let mut seen = self.state.count.load(Ordering::Acquire);
        loop {
            if seen & CLOSED != 0 {
                return None;
            }
            match self.state.count.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(Member { state: self.state.clone() }),
                Err(now) => seen = now,
            }
        }
    }

    pub fn len(&self) -> usize {
        self.state.count.load(Ordering::Acquire) & !CLOSED
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No more members from here on.
    pub fn close(&self) {
        self.state.count.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Returns when the group is empty; close it first. Dropping the future does no harm.
    pub async fn wait(&self) {
        loop {
            let left = self.state.empty.notified();
            if self.is_empty() {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.state.count.fetch_sub(1, Ordering::AcqRel) & !CLOSED == 1 {
            self.state.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn waits_for_members_and_refuses_new_ones() {
        let group = WaitGroup::default();
        let (a, b) = (group.join().unwrap(), group.join().unwrap());
        group.close();
        assert!(group.join().is_none());
        let mut wait = Box::pin(group.wait());
        assert!(wait.as_mut().now_or_never().is_none());
        drop(a);
        assert!(wait.as_mut().now_or_never().is_none());
        drop(b);
        wait.await;
        assert!(group.is_empty());
    }
}
