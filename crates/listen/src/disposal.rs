//! Freeing the state of parked connections.
//!
//! A state is tens of kilobytes in a few blocks. Connections wander between the runtime's threads, and memory that one
//! thread has taken and another one gives up is not free before the first one looks for blocks of that size again:
//! in a server that has fallen silent, never. The allocator knows better what to do with memory that neither of them
//! gives up. So that is left to a thread of its own, which takes nothing, and which ends when there is nothing more
//! to do: that is when the allocator returns to the system what is free for good.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longer than the allocator keeps memory that is free, lest it were needed again; that is a second.
const LINGER: Duration = Duration::from_secs(2);
/// Where there is no end of work another thread takes over, as the allocator acts when one ends.
const SHIFT: Duration = Duration::from_secs(10);
/// States that wait. More are given up on the spot: then there is no silence to come.
const MAX_WAITING: usize = 1024;
/// To drop something takes little.
const STACK_BYTES: usize = 256 * 1024;

type Remains = Box<dyn Send>;

#[derive(Default)]
pub struct Disposal {
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Remains>,
    has_thread: bool,
}

impl Disposal {
    /// Drops this soon.
    pub fn take(self: &Arc<Self>, remains: Remains) {
        let mut queue = self.lock();
        if queue.waiting.len() >= MAX_WAITING {
            drop(queue);
            drop(remains);
            return;
        }
        queue.waiting.push(remains);
        if std::mem::replace(&mut queue.has_thread, true) {
            self.came.notify_one();
        } else {
            self.begin_shift(queue);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_shift(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        let this = self.clone();
        let begun =
            std::thread::Builder::new().name("disposal".into()).stack_size(STACK_BYTES).spawn(move || this.work());
        if begun.is_err() {
            queue.has_thread = false;
            let waiting = std::mem::take(&mut queue.waiting);
            drop(queue);
            drop(waiting);
        }
    }

    fn work(self: Arc<Self>) {
        let end = Instant::now() + SHIFT;
        let mut queue = self.lock();
        loop {
            let waiting = std::mem::take(&mut queue.waiting);
            if waiting.is_empty() {
                queue.has_thread = false;
                return;
            }
            drop(queue);
            // The rest goes its way even if one of them fails; the panic has been logged.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(waiting)));
            queue = self.lock();
            if Instant::now() >= end {
                return self.begin_shift(queue);
            }
            let idle = |queue: &mut Queue| queue.waiting.is_empty();
            queue = self.came.wait_timeout_while(queue, LINGER, idle).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Says where it was dropped.
    struct Remnant(mpsc::Sender<std::thread::ThreadId>);

    impl Drop for Remnant {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().id());
        }
    }

    #[test]
    fn all_is_dropped_by_a_thread_of_its_own() {
        let disposal = Arc::new(Disposal::default());
        let (sender, receiver) = mpsc::channel();
        for _ in 0..100 {
            disposal.take(Box::new(Remnant(sender.clone())));
        }
        drop(sender);
        let threads: Vec<_> = receiver.iter().collect();
        assert_eq!(threads.len(), 100);
        assert!(threads.iter().all(|thread| *thread == threads[0] && *thread != std::thread::current().id()));
    }

    #[test]
    fn those_that_wait_are_bounded() {
        let disposal = Arc::new(Disposal::default());
        let (sender, receiver) = mpsc::channel();
        disposal.lock().has_thread = true;
        for _ in 0..MAX_WAITING + 1 {
            disposal.take(Box::new(Remnant(sender.clone())));
        }
        assert_eq!(receiver.recv().unwrap(), std::thread::current().id());
        assert_eq!(disposal.lock().waiting.len(), MAX_WAITING);
        drop((disposal, sender));
        assert_eq!(receiver.iter().count(), MAX_WAITING);
    }
}
