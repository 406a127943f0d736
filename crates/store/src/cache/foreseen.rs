//! What this server is about to write, as readers will see it: when the write comes back in the feed, nothing has to be
//! decoded. A guess at most: what does not come back as foreseen is decoded.

use super::object::{Draft, EventKind};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Writes that are on their way at the same time. Those that never come back leave something behind; it goes when there are
/// more.
const MAX_WRITES: usize = 1024;

#[derive(Default)]
pub(super) struct Foreseen {
    /// By key: the value in the clear, and what it reads as.
    writes: Mutex<HashMap<Bytes, (Bytes, Arc<Draft>)>>,
}

impl Foreseen {
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

    /// What `value` reads as, if it was foreseen.
    pub fn take(&self, key: &Bytes, value: &[u8], kind: EventKind) -> Option<Arc<Draft>> {
        let mut writes = self.writes.lock().expect("no panic under this lock");
        // What was not encrypted on the way is the same memory still.
        let is_same = |foreseen: &[u8]| std::ptr::eq(foreseen, value) || foreseen == value;
        if !writes.get(key).is_some_and(|(foreseen, draft)| draft.kind() == kind && is_same(foreseen)) {
            return None;
        }
        writes.remove(key).map(|(_, draft)| draft)
    }
}
