//! Every task of the server runs under a name, is told when to stop, and is waited for. A task that panics
//! stops the server: a control plane that has silently lost a loop is worse than one that restarts.

use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone, Default)]
pub struct Tasks {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tracker: TaskTracker,
    stop: CancellationToken,
    failed: CancellationToken,
    failure: OnceLock<String>,
    /// Names of running tasks, with how many run under each.
    running: Mutex<BTreeMap<String, u64>>,
}

impl Tasks {
    /// Cancelled when tasks should end.
    pub fn stopping(&self) -> CancellationToken {
        self.inner.stop.clone()
    }

    /// Runs `task` until it ends by itself. It must look at [`Tasks::stopping`].
    pub fn spawn(&self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), task.boxed());
    }

    /// Runs `task` and drops it when the tasks are told to end: for loops that hold nothing to tidy up.
    pub fn spawn_until_stopped(&self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) {
        self.start_until_stopped(name.into(), task.boxed());
    }

    fn start_until_stopped(&self, name: String, task: BoxFuture<'static, ()>) {
        let stop = self.stopping();
        self.spawn(name, async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Every task is of this one type: what runs a task is not compiled again for each of them.
    fn start(&self, name: String, task: BoxFuture<'static, ()>) {
        let running = Running::enter(self.inner.clone(), name.clone());
        let inner = self.inner.clone();
        self.inner.tracker.spawn(async move {
            let _running = running;
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                inner.fail(format!("task {name} panicked: {}", panic_message(&*panic)));
            }
        });
    }

    /// Names of the tasks that run now, with how many run under each.
    pub fn running(&self) -> BTreeMap<String, u64> {
        self.inner.running.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Records a failure that ends the server. The first one counts.
    pub fn fail(&self, why: impl Into<String>) {
        self.inner.fail(why.into());
    }

    /// Returns, with the reason, when a task has failed.
    pub async fn failed(&self) -> String {
        self.inner.failed.cancelled().await;
        self.inner.failure.get().cloned().unwrap_or_default()
    }

    /// Tells all tasks to end and waits for them, at most `limit`. Names those that are still running then.
    pub async fn shut_down(&self, limit: Duration) -> Result<(), Vec<String>> {
        self.inner.stop.cancel();
        self.inner.tracker.close();
        match tokio::time::timeout(limit, self.inner.tracker.wait()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.inner.running.lock().unwrap_or_else(|e| e.into_inner()).keys().cloned().collect()),
        }
    }
}

impl Inner {
    fn fail(&self, why: String) {
        tracing::error!("{why}");
        let _ = self.failure.set(why);
        self.failed.cancel();
    }
}

struct Running {
    inner: Arc<Inner>,
    name: String,
}

impl Running {
    fn enter(inner: Arc<Inner>, name: String) -> Running {
        *inner.running.lock().unwrap_or_else(|e| e.into_inner()).entry(name.clone()).or_default() += 1;
        Running { inner, name }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self.inner.running.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(count) = running.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.name);
            }
        }
    }
}

/// What a panic said, where it said something.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn drains_and_names_what_does_not_end() {
        let tasks = Tasks::default();
        let stop = tasks.stopping();
        tasks.spawn("good", async move { stop.cancelled().await });
        assert_eq!(tasks.shut_down(Duration::from_secs(1)).await, Ok(()));

        let tasks = Tasks::default();
        tasks.spawn("stubborn", std::future::pending());
        tasks.spawn_until_stopped("loop", std::future::pending());
        assert_eq!(tasks.shut_down(Duration::from_secs(1)).await, Err(vec!["stubborn".to_owned()]));
    }

    #[tokio::test]
    async fn a_panic_is_a_failure() {
        let tasks = Tasks::default();
        tasks.spawn("shaky", async { panic!("oops") });
        assert_eq!(tasks.failed().await, "task shaky panicked: oops");
    }
}
