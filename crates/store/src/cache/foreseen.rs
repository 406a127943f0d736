//! What this server is about to write, as readers will see it: when the write comes back in the feed, nothing has to be
//! decoded. A guess at most: what does not come back as foreseen is decoded.

use super::hub::Renderer;
use super::object::Rendered;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Writes that are on their way at the same time. Those that never come back leave something behind; it goes when there are
/// more.
const MAX_WRITES: usize = 1024;

#[derive(Default)]
pub(super) struct Foreseen {
    /// By key: the value in the clear, and what it reads as.
    writes: Mutex<HashMap<Bytes, (Bytes, Arc<Rendered>)>>,
}

impl Foreseen {
    pub fn put(&self, key: Bytes, value: Bytes, rendered: Arc<Rendered>) {
        let mut writes = self.writes.lock().expect("no panic under this lock");
        if writes.len() >= MAX_WRITES {
            writes.clear();
        }
        writes.insert(key, (value, rendered));
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
    fn take(&self, key: &Bytes, value: &[u8]) -> Option<Arc<Rendered>> {
        let mut writes = self.writes.lock().expect("no panic under this lock");
        if writes.get(key).is_none_or(|(foreseen, _)| foreseen != value) {
            return None;
        }
        writes.remove(key).map(|(_, rendered)| rendered)
    }
}

/// Renders the value of a key, by what was foreseen if possible.
pub(super) struct Foreseeing<'a> {
    pub foreseen: &'a Foreseen,
    pub key: &'a Bytes,
    pub renderer: &'a dyn Renderer,
}

impl Renderer for Foreseeing<'_> {
    fn render(&self, value: &[u8], revision: i64) -> Result<Rendered, String> {
        match self.foreseen.take(self.key, value) {
            Some(rendered) => Ok(rendered.at(revision)),
            None => self.renderer.render(value, revision),
        }
    }
}
