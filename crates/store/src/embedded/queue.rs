//! The queue in front of the writer: whatever waits is taken together.
//!
//! A commit costs as much as many writes, so the writer lets the runtime make one round before it takes what waits: whoever
//! is ready to go on by then, those of the last commit among them, may have something to write, too. Where nobody else
//! is, that is over at once.

use super::batch::Answer;
use crate::model::{Deleted, Expect, Revision};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// What one commit takes at most: more would make the first of them wait without saving a sync worth having.
const MAX_BATCH_REQUESTS: usize = 512;
const MAX_BATCH_BYTES: usize = 8 << 20;

/// With so many the writer begins at once: its own work is most of a commit by then.
const ENOUGH: usize = 64;
/// How long the writer waits for a round. A runtime takes as long when hundreds of tasks are ready; one that nobody drives takes
/// for ever.
const PATIENCE: Duration = Duration::from_millis(2);

pub(super) enum Request {
    Put {
        key: Bytes,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
        reply: oneshot::Sender<Answer<Revision>>,
    },
    Delete {
        key: Bytes,
        expect: Expect,
        reply: oneshot::Sender<Answer<Deleted>>,
    },
    Compact {
        revision: Revision,
        reply: oneshot::Sender<Answer<()>>,
    },
    /// Does what is due by the clock.
    Tick {
        reply: oneshot::Sender<Answer<()>>,
    },
    Close {
        reply: oneshot::Sender<()>,
    },
}

impl Request {
    pub fn weight(&self) -> usize {
        match self {
            Request::Put { key, value, .. } => key.len() + value.len(),
            Request::Delete { key, .. } => key.len(),
            _ => 0,
        }
    }
}

pub(super) struct Waiting {
    pub request: Request,
    /// The request's share of what may wait, given back when it has been answered.
    pub _permit: Option<OwnedSemaphorePermit>,
}

pub(super) struct Queue {
    state: Mutex<QueueState>,
    ready: Condvar,
    patience: Duration,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { state: Mutex::default(), ready: Condvar::new(), patience: PATIENCE }
    }
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Waiting>,
    /// The size of the last batch.
    last: usize,
    /// Of those who write.
    runtime: Option<Handle>,
    /// How many rounds began, and the one that the writer waits for.
    rounds: u64,
    round: Option<u64>,
    /// Somebody blocks a thread until the writer has come to this request: the round may need that thread.
    is_urgent: bool,
    /// The writer is gone: nobody would ever answer.
    abandoned: bool,
}

/// A task that has its turn when all that are ready before it have had theirs. The round ends with it, also if its runtime does not run
/// it any more.
struct Round {
    queue: Arc<Queue>,
    number: u64,
}

impl Round {
    /// To be called without the lock of the queue: a runtime that has ended drops the task here.
    fn begin(self, runtime: &Handle) {
        runtime.spawn(async move {
            // The second turn comes after sockets were looked at.
            tokio::task::yield_now().await;
            drop(self);
        });
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if state.round == Some(self.number) {
            state.round = None;
            drop(state);
            self.queue.ready.notify_one();
        }
    }
}

impl QueueState {
    fn pop(&mut self, most: usize) -> Vec<Waiting> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < most && bytes < MAX_BATCH_BYTES {
            let Some(waiting) = self.waiting.pop_front() else { break };
            bytes += waiting.request.weight();
            batch.push(waiting);
        }
        self.last = batch.len();
        self.is_urgent = false;
        batch
    }

    /// The number of a round that is to begin, unless there is one, or no runtime to make it.
    fn next_round(&mut self) -> Option<(u64, Handle)> {
        let runtime = self.runtime.clone().filter(|_| self.round.is_none())?;
        self.rounds += 1;
        self.round = Some(self.rounds);
        Some((self.rounds, runtime))
    }

    fn may_grow(&self) -> bool {
        self.round.is_some() && self.waiting.len() < ENOUGH && !self.is_urgent
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("no panic while the queue is locked")
    }

    fn begin(self: &Arc<Self>, round: Option<(u64, Handle)>) {
        if let Some((number, runtime)) = round {
            Round { queue: self.clone(), number }.begin(&runtime);
        }
    }

    /// False when the writer is gone.
    pub fn push(self: &Arc<Self>, waiting: Waiting) -> bool {
        let mut state = self.lock();
        if state.abandoned {
            return false;
        }
        state.is_urgent |= matches!(waiting.request, Request::Close { .. });
        state.waiting.push_back(waiting);
        let is_first = state.waiting.len() == 1;
        let wake = is_first || state.is_urgent || state.waiting.len() == ENOUGH;
        let mut round = None;
        if is_first {
            state.runtime = Handle::try_current().ok();
            round = state.next_round();
        }
        drop(state);
        self.begin(round);
        if wake {
            self.ready.notify_one();
        }
        true
    }

    /// Waits for requests, up to `timeout`, and takes a batch of them. Empty after the timeout.
    pub fn take(self: &Arc<Self>, timeout: Option<Duration>) -> Vec<Waiting> {
        let mut state = self.lock();
        // Some of several who were answered just now come again.
        let round = if state.last > 1 { state.next_round() } else { None };
        if round.is_some() {
            drop(state);
            self.begin(round);
            state = self.lock();
        }
        let is_empty = |state: &mut QueueState| state.waiting.is_empty();
        match timeout {
            Some(timeout) => {
                let waited = self.ready.wait_timeout_while(state, timeout, is_empty);
                state = waited.expect("no panic while the queue is locked").0;
            }
            None => state = self.ready.wait_while(state, is_empty).expect("no panic while the queue is locked"),
        }
        if !state.waiting.is_empty() && state.may_grow() {
            let waited = self.ready.wait_timeout_while(state, self.patience, |state| state.may_grow());
            state = waited.expect("no panic while the queue is locked").0;
            // One that was not waited for to its end is no reason to begin none.
            state.round = None;
        }
        state.pop(MAX_BATCH_REQUESTS)
    }

    /// Takes so many of those that wait, for the simulation.
    #[cfg(test)]
    pub fn take_at_once(&self, requests: usize) -> Vec<Waiting> {
        self.lock().pop(requests)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Refuses further requests and hands out those that wait.
    pub fn abandon(&self) -> Vec<Waiting> {
        let mut state = self.lock();
        state.abandoned = true;
        state.waiting.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::{Builder, Runtime};

    const FOR_EVER: Duration = Duration::from_secs(3600);

    fn queue(patience: Duration) -> Arc<Queue> {
        Arc::new(Queue { patience, ..Queue::default() })
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    fn tick() -> Waiting {
        Waiting { request: Request::Tick { reply: oneshot::channel().0 }, _permit: None }
    }

    #[test]
    fn all_who_are_ready_are_taken_together() {
        let queue = queue(FOR_EVER);
        let taker = queue.clone();
        let writer = std::thread::spawn(move || [taker.take(None).len(), taker.take(None).len()]);
        runtime().block_on(async {
            for batch in [10, 20] {
                let tasks = (0..batch).map(|_| {
                    let queue = queue.clone();
                    tokio::spawn(async move { assert!(queue.push(tick())) })
                });
                futures::future::join_all(tasks.collect::<Vec<_>>()).await;
                while queue.len() > 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
        assert_eq!(writer.join().unwrap(), [10, 20]);
    }

    #[test]
    fn enough_are_taken_at_once() {
        let (queue, idle) = (queue(FOR_EVER), runtime());
        let _within = idle.enter();
        (0..ENOUGH).for_each(|_| assert!(queue.push(tick())));
        assert_eq!(queue.take(None).len(), ENOUGH);
    }

    #[test]
    fn a_runtime_that_nobody_drives_keeps_nobody_waiting() {
        let (queue, idle) = (queue(Duration::from_millis(1)), runtime());
        let _within = idle.enter();
        for _ in 0..2 {
            assert!(queue.push(tick()));
            assert_eq!(queue.take(None).len(), 1);
        }
    }

    #[test]
    fn a_runtime_that_ends_ends_its_round() {
        let (queue, ending) = (queue(FOR_EVER), runtime());
        ending.block_on(async { assert!(queue.push(tick())) });
        drop(ending);
        assert_eq!(queue.take(None).len(), 1);
    }

    /// Who closes the store joins the writer, on a thread of the runtime.
    #[test]
    fn closing_waits_for_no_round() {
        let (queue, blocked) = (queue(FOR_EVER), runtime());
        let _within = blocked.enter();
        assert!(queue.push(tick()));
        assert!(queue.push(Waiting { request: Request::Close { reply: oneshot::channel().0 }, _permit: None }));
        assert_eq!(queue.take(None).len(), 2);
    }
}
