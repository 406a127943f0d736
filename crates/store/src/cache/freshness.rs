//! How far the caches have come, how far this server has written, and waiting for the one to reach the other.

use super::hub::ReadBy;
use std::sync::RwLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long a read waits for the feed to reach a revision before it fails, as in kube-apiserver.
pub const FRESH_TIMEOUT: Duration = Duration::from_secs(3);
/// Progress requests may get lost with a connection: ask again this often while waiting.
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct Freshness {
    /// The revision up to which all caches are complete.
    applied: watch::Sender<i64>,
    /// The latest revision that this server has written itself.
    written: AtomicI64,
    /// The latest of them that admission reads.
    written_for_admission: AtomicI64,
    /// Times that the store said how far it is, with nothing new.
    pub notices: AtomicU64,
    /// Asks the store how far it is.
    control: RwLock<Option<crate::WatchControl>>,
}

impl Freshness {
    pub fn new(applied: i64) -> Freshness {
        Freshness {
            applied: watch::Sender::new(applied),
            written: AtomicI64::new(0),
            written_for_admission: AtomicI64::new(0),
            notices: AtomicU64::new(0),
            control: RwLock::default(),
        }
    }

    pub fn applied(&self) -> i64 {
        *self.applied.borrow()
    }

    /// The caches have reached `revision`, unless they were further already.
    pub fn advance(&self, revision: i64) {
        self.applied.send_if_modified(|applied| {
            let later = revision > *applied;
            *applied = revision.max(*applied);
            later
        });
    }

    /// The caches were loaded anew.
    pub fn start_over(&self, revision: i64) {
        self.applied.send_replace(revision);
    }

    /// From now on this watch feeds the caches, or none does.
    pub fn follow(&self, control: Option<crate::WatchControl>) {
        *self.control.write().expect("no panic under this lock") = control;
    }

    /// Notes a write of this server.
    pub fn wrote(&self, revision: i64, read_by: ReadBy) {
        self.written.fetch_max(revision, Ordering::AcqRel);
        if read_by == ReadBy::Admission {
            self.written_for_admission.fetch_max(revision, Ordering::AcqRel);
        }
    }

    pub fn written(&self) -> i64 {
        self.written.load(Ordering::Acquire)
    }

    pub fn written_for_admission(&self) -> i64 {
        self.written_for_admission.load(Ordering::Acquire)
    }

    /// Waits until the caches have reached `revision`; false after `FRESH_TIMEOUT`.
    pub async fn wait_for(&self, revision: i64) -> bool {
        if self.applied() >= revision {
            return true;
        }
        let mut applied = self.applied.subscribe();
        let reached = async {
            loop {
                if let Some(control) = &*self.control.read().expect("no panic under this lock") {
                    control.request_progress();
                }
                match tokio::time::timeout(ASK_AGAIN, applied.wait_for(|r| *r >= revision)).await {
                    Ok(reached) => return reached.is_ok(),
                    Err(_) => continue,
                }
            }
        };
        tokio::time::timeout(FRESH_TIMEOUT, reached).await.unwrap_or(false)
    }
}
