//! Tasks on one thread, in an order that follows from a seed.

use crate::random::Random;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

/// Shared, so that the disk can let tasks run while the writer waits for it.
#[derive(Clone, Default)]
pub struct Executor(Arc<Mutex<Tasks>>);

#[derive(Default)]
struct Tasks {
    tasks: BTreeMap<usize, Task>,
    started: usize,
    turns: u64,
}

struct Task {
    /// Absent while it is polled.
    future: Option<BoxFuture<'static, ()>>,
    ready: Arc<Ready>,
}

struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Executor {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().expect("no panic while the tasks are locked")
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.lock();
        let id = tasks.started;
        tasks.started += 1;
        let task = Task { future: Some(Box::pin(task)), ready: Arc::new(Ready(AtomicBool::new(true))) };
        tasks.tasks.insert(id, task);
    }

    /// How often a task had a turn.
    pub fn turns(&self) -> u64 {
        self.lock().turns
    }

    /// Gives one of the tasks that have something to do a turn; false if there is none.
    pub fn step(&self, random: &mut Random) -> bool {
        let (id, mut future, ready) = {
            let mut tasks = self.lock();
            let is_ready = |task: &Task| task.future.is_some() && task.ready.0.load(Ordering::SeqCst);
            let ready: Vec<usize> = tasks.tasks.iter().filter(|(_, task)| is_ready(task)).map(|(id, _)| *id).collect();
            if ready.is_empty() {
                return false;
            }
            let id = ready[random.below(ready.len())];
            tasks.turns += 1;
            let Some(task) = tasks.tasks.get_mut(&id) else { return false };
            task.ready.0.store(false, Ordering::SeqCst);
            (id, task.future.take(), task.ready.clone())
        };
        let waker = Waker::from(ready);
        let done = match &mut future {
            Some(future) => future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()),
            None => true,
        };
        let mut tasks = self.lock();
        if done {
            tasks.tasks.remove(&id);
        } else if let Some(task) = tasks.tasks.get_mut(&id) {
            task.future = future;
        }
        drop(tasks);
        true
    }

    /// The process is gone, and its tasks with it: none of them has another turn.
    pub fn kill(&self) {
        let tasks = std::mem::take(&mut self.lock().tasks);
        drop(tasks);
    }
}
