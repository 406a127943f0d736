//! What pods may ask for at all, by the operator's word: one for the whole process, as rules are plain functions.

use std::sync::atomic::{AtomicBool, Ordering};

static PRIVILEGED: AtomicBool = AtomicBool::new(true);

/// `--allow-privileged`: whether containers may be privileged. They may unless a server says otherwise.
pub fn allow_privileged(allowed: bool) {
    PRIVILEGED.store(allowed, Ordering::Relaxed);
}

pub(crate) fn privileged() -> bool {
    PRIVILEGED.load(Ordering::Relaxed)
}
