//! Reading a data file that was there before while its pages are still being compared with their checksums.
//!
//! ```text
//! caller:  preview ── reads ────────────────────────────── reads ──>
//! writer:          └─ check every page ── open ── swap ──┘└─ writes
//! ```
//! The preview reads through an overlay, so that nothing is written to a file of which nobody knows yet whether it is whole. What
//! was read of it counts only once [`super::EmbeddedStore::settled`] has said so.

use super::Shared;
use super::engine::{Engine, Preview, panic_text};
use super::snapshot::Snapshot;
use super::writer::{self, Writer};
use crate::error::{Result, StoreError};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};

/// A store that can be read, and what is left to do until it can be written to.
pub(super) struct Unsettled {
    preview: Preview,
    /// Nothing is ever sent: it ends with the last copy of the preview's snapshot.
    last_reader: mpsc::Receiver<()>,
}

impl Unsettled {
    pub fn new(preview: Preview) -> Result<(Unsettled, Snapshot)> {
        let (held, last_reader) = mpsc::channel();
        let snapshot = Snapshot { _held: Some(held), ..preview.engine.snapshot()? };
        Ok((Unsettled { preview, last_reader }, snapshot))
    }

    /// Checks the file and writes from then on, until the store is closed; or refuses everything if the file is damaged.
    pub fn run(self, shared: Arc<Shared>) {
        let settled = std::panic::catch_unwind(AssertUnwindSafe(|| self.settle(&shared)));
        match settled.unwrap_or_else(|panic| Err(StoreError::Corrupt(panic_text(&*panic)))) {
            Ok(writer) => {
                shared.settled.send_replace(true);
                writer.run();
            }
            Err(error) => writer::refuse_all(&shared, error),
        }
    }

    fn settle(self, shared: &Arc<Shared>) -> Result<Writer> {
        let Unsettled { preview: Preview { engine: seen, is_checked }, last_reader } = self;
        let (disk, progress) = (&*shared.disk, shared.progress.clone());
        let engine = match is_checked {
            true => Engine::open_checked(disk, shared.cache_bytes, progress)?,
            false => Engine::open(disk, shared.cache_bytes, progress)?,
        };
        if engine.state != seen.state {
            return Err(StoreError::Corrupt("the data file is not what it was when it was checked".into()));
        }
        let snapshot = Arc::new(engine.snapshot()?);
        shared.hub.jump(engine.state.revision(), || shared.snapshot.store(Some(snapshot)));
        // The engine that writes does not know of the preview's readers, and would write where they read.
        let _ = last_reader.recv();
        drop(seen);
        engine.mark_format()?;
        Writer::new(shared.clone(), engine)
    }
}
