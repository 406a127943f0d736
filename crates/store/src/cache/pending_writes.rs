//! Pending writes of this server, with the object as readers will see it: when a write comes back in the feed, its value need
//! not be decoded. Only a shortcut: a value that comes back different is decoded.

use super::object::{Draft, EventKind};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Writes that are on their way at the same time. Those that never come back leave something behind; it goes when there are
/// more.
const MAX_WRITES: usize = 1024;

#[derive(Default)]
pub(super) struct PendingWrites {
    /// By key: the value in the clear, and what it reads as.
    writes: Mutex<HashMap<Bytes, (Bytes, Arc<Draft>)>>,
}

impl PendingWrites {
    pub fn put(&self, key: Bytes, value: Bytes, draft: Arc<Draft>) {
        let mut writes = self.writes.lock().expect("no panic under this lock");
        if writes.len() >= MAX_WRITES {
            writes.clear();
        }
        writes.insert(key, (value, draft));
    }

    /// Nothing comes of a write.
    pub fn forget(&self, key: &Bytes) {
        self.writes.lock().expect("no panic under this lock").remove(key);
    }

    /// The feed has a gap: what was written then does not come back.
    pub fn clear(&self) {
        self.writes.lock().expect("no panic under this lock").clear();
    }

    /// The object that `value` reads as, if this is the write that was pending.
    pub fn take(&self, key: &Bytes, value: &[u8], kind: EventKind) -> Option<Arc<Draft>> {
        let mut writes = self.writes.lock().expect("no panic under this lock");
        // What was not encrypted on the way is the same memory still.
        let is_same = |written: &[u8]| std::ptr::eq(written, value) || written == value;
        if !writes.get(key).is_some_and(|(written, draft)| draft.kind() == kind && is_same(written)) {
            return None;
        }
        writes.remove(key).map(|(_, draft)| draft)
    }
}
