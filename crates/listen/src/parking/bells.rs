//! Tells which of the answers of a parked connection have something to send: a connection with many watches does not look at
//! all of them for each event.

use futures::task::AtomicWaker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

pub(super) struct Bells {
    board: Arc<Board>,
    wakers: Vec<Waker>,
}

#[derive(Default)]
struct Board {
    /// The connection's.
    task: AtomicWaker,
    rung: Mutex<VecDeque<Arc<Bell>>>,
}

struct Bell {
    nth: usize,
    is_rung: AtomicBool,
    board: Arc<Board>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            self.board.rung.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.clone());
            self.board.task.wake();
        }
    }
}

impl Bells {
    /// All of them have rung: nobody has looked yet.
    pub fn new(answers: usize) -> Bells {
        let board = Arc::<Board>::default();
        let bell = |nth| Waker::from(Arc::new(Bell { nth, is_rung: AtomicBool::new(false), board: board.clone() }));
        let bells = Bells { wakers: (0..answers).map(bell).collect(), board };
        bells.wakers.iter().for_each(Waker::wake_by_ref);
        bells
    }

    /// What the answer is polled with.
    pub fn waker(&self, nth: usize) -> &Waker {
        &self.wakers[nth]
    }

    /// One that has rung; `cx` is woken when another one does.
    pub fn next(&mut self, cx: &Context<'_>) -> Option<usize> {
        self.board.task.register(cx.waker());
        let bell = self.board.rung.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        bell.is_rung.store(false, Ordering::Release);
        Some(bell.nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rings_once_until_it_was_heard() {
        let cx = Context::from_waker(Waker::noop());
        let mut bells = Bells::new(3);
        let heard = |bells: &mut Bells| std::iter::from_fn(|| bells.next(&cx)).collect::<Vec<_>>();
        assert_eq!(heard(&mut bells), [0, 1, 2]);
        assert_eq!(heard(&mut bells), []);
        for _ in 0..2 {
            bells.waker(1).wake_by_ref();
        }
        assert_eq!(heard(&mut bells), [1]);
        bells.waker(1).wake_by_ref();
        assert_eq!(heard(&mut bells), [1]);
    }
}
