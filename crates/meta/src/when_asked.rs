//! Work that waits for the first question: what nobody asks about need not be learned.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub struct WhenAsked {
    is_waiting: AtomicBool,
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl WhenAsked {
    pub fn put_off(&self, work: impl FnOnce() + Send + 'static) {
        *self.work.lock().expect("no panic while held") = Some(Box::new(work));
        self.is_waiting.store(true, Ordering::Release);
    }

    /// Before an answer: does what was put off, or waits for whoever does.
    pub fn asked(&self) {
        if self.is_waiting.load(Ordering::Acquire) {
            self.work();
        }
    }

    #[cold]
    fn work(&self) {
        let mut work = self.work.lock().expect("no panic while held");
        if let Some(work) = work.take() {
            work();
            self.is_waiting.store(false, Ordering::Release);
        }
    }
}

impl fmt::Debug for WhenAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WhenAsked").field("is_waiting", &self.is_waiting).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn work_is_done_once_before_whoever_asks_goes_on() {
        let (when, done) = (WhenAsked::default(), Arc::<AtomicUsize>::default());
        when.asked();
        let counted = done.clone();
        when.put_off(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    when.asked();
                    assert_eq!(done.load(Ordering::Relaxed), 1);
                });
            }
        });
    }
}
