//! The queue in front of the writer: whatever waits is taken together.

use super::batch::Answer;
use crate::model::{Deleted, Expect, Revision};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// What one commit takes at most: more would make the first of them wait without saving a sync worth having.
const MAX_BATCH_REQUESTS: usize = 512;
const MAX_BATCH_BYTES: usize = 8 << 20;

/// How long the writer waits for a batch to become as large as the last one was. Writers that were just
/// answered come back within this time; without it the first of them would get a commit of its own and the
/// others would wait for it.
const LINGER: Duration = Duration::from_micros(100);

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

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    ready: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Waiting>,
    /// The writer sleeps until this many wait.
    wanted: usize,
    /// The size of the last batch.
    last: usize,
    /// The writer is gone: nobody would ever answer.
    abandoned: bool,
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
        batch
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("no panic while the queue is locked")
    }

    /// False when the writer is gone.
    pub fn push(&self, waiting: Waiting) -> bool {
        let mut state = self.lock();
        if state.abandoned {
            return false;
        }
        state.waiting.push_back(waiting);
        let wake = state.waiting.len() >= state.wanted;
        drop(state);
        if wake {
            self.ready.notify_one();
        }
        true
    }

    /// Waits for requests, up to `timeout`, and takes a batch of them. Empty after the timeout.
    pub fn take(&self, timeout: Option<Duration>) -> Vec<Waiting> {
        let mut state = self.lock();
        state.wanted = 1;
        let is_empty = |state: &mut QueueState| state.waiting.is_empty();
        match timeout {
            Some(timeout) => {
                let waited = self.ready.wait_timeout_while(state, timeout, is_empty);
                state = waited.expect("no panic while the queue is locked").0;
            }
            None => state = self.ready.wait_while(state, is_empty).expect("no panic while the queue is locked"),
        }
        if !state.waiting.is_empty() && state.waiting.len() < state.last {
            state.wanted = state.last;
            let too_few = |state: &mut QueueState| state.waiting.len() < state.wanted;
            let waited = self.ready.wait_timeout_while(state, LINGER, too_few);
            state = waited.expect("no panic while the queue is locked").0;
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
