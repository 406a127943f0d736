//! The entries of a sealed object, which its copies share, and their text where they come from one.

use crate::{Key, Value};
use bytes::Bytes;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) type Entries = Vec<(Key, Value)>;

/// Reads the entries of an object from its JSON.
pub type ReadEntries = fn(&Bytes) -> Entries;

/// Entries that do not change any more. Those that come as text are read when somebody first asks for one of them.
pub(crate) struct Sealed {
    entries: OnceLock<Entries>,
    text: Option<(Bytes, ReadEntries)>,
    judged: AtomicBool,
}

impl Sealed {
    pub(crate) fn of_text(text: Bytes, read: ReadEntries) -> Sealed {
        Sealed { entries: OnceLock::new(), text: Some((text, read)), judged: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn entries(&self) -> &Entries {
        match self.entries.get() {
            Some(entries) => entries,
            None => self.read(),
        }
    }

    #[cold]
    fn read(&self) -> &Entries {
        self.entries.get_or_init(|| self.text.as_ref().map(|(text, read)| read(text)).unwrap_or_default())
    }

    /// The JSON that they were read from, or are going to be.
    pub(crate) fn text(&self) -> Option<&Bytes> {
        self.text.as_ref().map(|(text, _)| text)
    }

    /// Whether nobody has asked for an entry yet.
    pub(crate) fn is_unread(&self) -> bool {
        self.entries.get().is_none()
    }

    pub(crate) fn is_judged(&self) -> bool {
        self.judged.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_judged(&self) {
        self.judged.store(true, Ordering::Relaxed);
    }

    pub(crate) fn into_entries(self) -> Entries {
        self.entries();
        self.entries.into_inner().unwrap_or_default()
    }
}

impl From<Entries> for Sealed {
    fn from(entries: Entries) -> Sealed {
        Sealed { entries: OnceLock::from(entries), text: None, judged: AtomicBool::new(false) }
    }
}
