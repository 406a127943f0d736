//! The log: lines like klog's, or JSON, on standard error, at a verbosity that can change while running.

mod format;
mod layer;
mod modules;

pub use format::Format;
pub use layer::{init, init_with};

use std::sync::atomic::{AtomicU8, Ordering};

/// The only state that is global: a log has no owner.
static VERBOSITY: AtomicU8 = AtomicU8::new(0);

/// `-v`: 0 is for operators, 2 tells the story, 3 every request, 4 details, 6 and more everything.
pub fn verbosity() -> u8 {
    VERBOSITY.load(Ordering::Relaxed)
}

pub fn set_verbosity(level: u8) {
    VERBOSITY.store(level, Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
}
