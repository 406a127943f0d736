//! Turns for those who have limits, so that those who have none, and other levels, find the threads free.
//!
//! The runtime serves tasks in the order in which they became ready. Where hundreds of connections always have something
//! to do, each request waits for all of theirs, whatever its priority. So work of a level waits here instead, and is let
//! into the runtime's queue as fast as that empties: a task with the lowest precedence, which the runtime comes to when a
//! thread has nothing else to do, or after some turns of others, lets one in for each thread.
//!
//! Who does not wait here may keep all threads busy; then more are let in each time, so that these, too, go on.
//!
//! Nobody holds a turn, so nobody can keep it from others: a connection that was let in, and waits for its client, costs
//! the others nothing.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// After each of these in which nobody was let in, one more is, for each thread: longer than a turn takes, or turns would make
/// room for ever more of them.
const PATIENCE: Duration = Duration::from_millis(2);
/// For each thread: what is let in is what others wait for.
const MOST: usize = 32;

/// Of those who wait for each other: a priority level, or connections that begin.
#[derive(Debug, Default)]
pub struct Turns(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Bounded by what may run at a time, as each of them is something that runs. Somebody lets them in while there are any.
    waiting: VecDeque<oneshot::Sender<()>>,
    /// How often threads have slept, and how many went on without waiting since then.
    sleeps: u64,
    passed: usize,
}

/// Ends when it is one's turn. Who drops it does not keep others waiting.
#[derive(Debug)]
pub struct Turn(oneshot::Receiver<()>);

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Without an answer the runtime is about to end.
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}

impl Turns {
    /// `None`: nobody waits, and hardly anybody has come since a thread had nothing to do.
    pub fn take(self: &Arc<Self>) -> Option<Turn> {
        let Ok(runtime) = Handle::try_current() else { return None };
        let mut state = self.lock();
        let metrics = runtime.metrics();
        let sleeps = (0..metrics.num_workers()).map(|thread| metrics.worker_park_count(thread)).sum();
        if state.waiting.is_empty() && state.passes(sleeps, metrics.num_workers()) {
            return None;
        }
        Some(self.queue(state, &runtime))
    }

    /// The next turn of one who had one.
    pub fn again(self: &Arc<Self>) -> Option<Turn> {
        let Ok(runtime) = Handle::try_current() else { return None };
        Some(self.queue(self.lock(), &runtime))
    }

    fn queue(self: &Arc<Self>, mut state: MutexGuard<'_, State>, runtime: &Handle) -> Turn {
        let (wake, turn) = oneshot::channel();
        state.waiting.push_back(wake);
        if state.waiting.len() == 1 {
            runtime.spawn(self.clone().let_in(runtime.metrics().num_workers()));
        }
        Turn(turn)
    }

    /// Ends when nobody waits.
    async fn let_in(self: Arc<Self>, threads: usize) {
        loop {
            let begin = Instant::now();
            tokio::task::yield_now().await;
            let mut state = self.lock();
            let mut left = threads * share(begin.elapsed());
            while left > 0
                && let Some(next) = state.waiting.pop_front()
            {
                // Who is gone takes nobody's turn.
                left -= usize::from(next.send(()).is_ok());
            }
            if state.waiting.is_empty() {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// How many are let in for each thread when it took so long to come to that.
fn share(waited: Duration) -> usize {
    (1 + waited.as_micros() / PATIENCE.as_micros()).min(MOST as u128) as usize
}

impl State {
    fn passes(&mut self, sleeps: u64, threads: usize) -> bool {
        if self.sleeps != sleeps {
            (self.sleeps, self.passed) = (sleeps, 0);
        }
        self.passed += 1;
        self.passed <= threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn few_go_on_at_once() {
        let mut state = State::default();
        assert_eq!([1; 3].map(|sleeps| state.passes(sleeps, 2)), [true, true, false]);
        assert!(state.passes(2, 2));
    }

    #[test]
    fn more_are_let_in_where_threads_are_busy() {
        assert_eq!([0, 1, 2, 24, 10_000].map(|millis| share(Duration::from_millis(millis))), [1, 1, 2, 13, 32]);
    }

    /// On one thread: of a hundred that come at a time hardly any goes on before one who came after them.
    #[tokio::test]
    async fn one_without_limits_does_not_wait_for_all() {
        let (turns, done) = (Arc::new(Turns::default()), Arc::new(AtomicUsize::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (turns, done) = (turns.clone(), done.clone());
            tasks.spawn(async move {
                if let Some(turn) = turns.take() {
                    turn.await;
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        let before = done.clone();
        let other = tokio::spawn(async move {
            tokio::task::yield_now().await;
            before.load(Ordering::Relaxed)
        });
        assert!(other.await.unwrap() < 50);
        tasks.join_all().await;
        assert_eq!(done.load(Ordering::Relaxed), 100);
    }

    #[tokio::test]
    async fn who_leaves_takes_no_turn() {
        let turns = Arc::new(Turns::default());
        let (first, second) = (turns.again(), turns.again());
        drop(first);
        second.unwrap().await;
        assert!(turns.lock().waiting.is_empty());
    }
}
