//! A controller: sources, a queue, workers.

use super::informer::{self, Change};
use super::{Backoff, Next, Queue};
use crate::lifecycle::Tasks;
use crate::lifecycle::tasks::panic_message;
use futures::FutureExt;
use futures::future::BoxFuture;
use kubelith_meta::time::turned;
use kubelith_meta::{Clock, Str};
use kubelith_observe::metrics::Metrics;
use kubelith_observe::metrics::workqueue::WorkqueueMetrics;
use kubelith_store::cache::ResourceCache;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

type Reconcile = Arc<dyn Fn(Str) -> BoxFuture<'static, Result<Next, String>> + Send + Sync>;
type Keys = Arc<dyn Fn(&Change) -> Vec<Str> + Send + Sync>;

pub struct Controller {
    name: &'static str,
    reconcile: Reconcile,
    sources: Vec<(Arc<ResourceCache>, Keys)>,
    first: Vec<Str>,
    every: Option<Duration>,
    workers: usize,
    backoff: Backoff,
    metrics: Option<Arc<WorkqueueMetrics>>,
    clock: Option<Arc<dyn Clock>>,
}

/// A controller that runs until its tasks are told to end.
#[derive(Clone)]
pub struct Running {
    queue: Queue,
    waiting: watch::Receiver<Option<usize>>,
}

impl Running {
    /// Asks for a key to be reconciled, whatever the sources say.
    pub fn add(&self, key: impl Into<Str>) {
        self.queue.add(key);
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns when every key that was there at the start was reconciled at least once, with success or not.
    pub async fn settled(&self) {
        // An error means that the controller has ended: nothing will settle any more, and nobody should wait for it.
        let _ = self.waiting.clone().wait_for(|left| *left == Some(0)).await;
    }
}

impl Controller {
    /// `reconcile` gets a key and reads the rest by itself. It must not mind being called too often, nor being dropped
    /// at any await when the server ends.
    pub fn new<F, E>(name: &'static str, reconcile: impl Fn(Str) -> F + Send + Sync + 'static) -> Controller
    where
        F: Future<Output = Result<Next, E>> + Send + 'static,
        E: Display,
    {
        let reconcile = move |key| -> BoxFuture<'static, Result<Next, String>> {
            let run = reconcile(key);
            Box::pin(async move { run.await.map_err(|e| e.to_string()) })
        };
        Controller {
            name,
            reconcile: Arc::new(reconcile),
            sources: Vec::new(),
            first: Vec::new(),
            every: None,
            workers: 1,
            backoff: Backoff::default(),
            metrics: None,
            clock: None,
        }
    }

    /// Every object of `cache` and every change of one, mapped to the keys that it concerns.
    pub fn watches(
        mut self,
        cache: &Arc<ResourceCache>,
        keys: impl Fn(&Change) -> Vec<Str> + Send + Sync + 'static,
    ) -> Controller {
        self.sources.push((cache.clone(), Arc::new(keys)));
        self
    }

    /// A key to begin with, for controllers of something that is no object.
    pub fn key(mut self, key: impl Into<Str>) -> Controller {
        self.first.push(key.into());
        self
    }

    /// All keys again and again, against what changes behind our back.
    pub fn every(mut self, period: Duration) -> Controller {
        self.every = Some(period);
        self
    }

    /// Keys reconciled at a time.
    pub fn workers(mut self, workers: usize) -> Controller {
        self.workers = workers;
        self
    }

    pub fn backoff(mut self, backoff: Backoff) -> Controller {
        self.backoff = backoff;
        self
    }

    /// Shows the queue in the metrics `workqueue_*`, under the controller's name.
    pub fn metrics(mut self, metrics: &Metrics) -> Controller {
        self.metrics = Some(metrics.workqueues.clone());
        self
    }

    /// Keys that wait are waiting for a time of this clock: whoever turns it wakes them.
    pub fn by(mut self, clock: &Arc<dyn Clock>) -> Controller {
        self.clock = clock.turns().is_some().then(|| clock.clone());
        self
    }

    pub fn start(self, tasks: &Tasks) -> Running {
        let queue = Queue::new(self.backoff, self.metrics.as_ref().map(|m| m.of(self.name)));
        let (left, waiting) = watch::channel(None);
        let progress = Arc::new(Progress::new(self.sources.len(), left));
        for key in &self.first {
            progress.add(&queue, key.clone());
        }
        progress.report();
        for (cache, keys) in self.sources.clone() {
            let (told, listed, queue) = (progress.clone(), progress.clone(), queue.clone());
            let tell = move |change: Change| keys(&change).into_iter().for_each(|key| told.add(&queue, key));
            tasks.spawn_until_stopped(self.name, async move {
                informer::follow(cache, tell, move || listed.source_listed()).await;
            });
        }
        for _ in 0..self.workers.max(1) {
            let worker = work(self.name, queue.clone(), self.reconcile.clone(), progress.clone());
            tasks.spawn_until_stopped(self.name, worker);
        }
        if let Some(clock) = self.clock {
            let queue = queue.clone();
            tasks.spawn_until_stopped(self.name, async move {
                let mut seen = 0;
                loop {
                    turned(&*clock, &mut seen).await;
                    queue.hurry();
                }
            });
        }
        if let Some(period) = self.every {
            tasks.spawn_until_stopped(self.name, again(period, queue.clone(), self.first, self.sources));
        }
        Running { queue, waiting }
    }
}

/// Every key at every turn of `period`.
async fn again(period: Duration, queue: Queue, first: Vec<Str>, sources: Vec<(Arc<ResourceCache>, Keys)>) {
    loop {
        tokio::time::sleep(period).await;
        first.iter().for_each(|key| queue.add(key.clone()));
        for (cache, keys) in &sources {
            for object in cache.snapshot().objects.values() {
                let change = Change { old: Some(object.clone()), new: Some(object.clone()) };
                keys(&change).into_iter().for_each(|key| queue.add(key));
            }
        }
    }
}

/// Which of the first keys were not reconciled yet.
struct Progress {
    state: Mutex<Unsettled>,
    /// Keys left of the start; `None` while sources are read.
    left: watch::Sender<Option<usize>>,
}

struct Unsettled {
    /// Sources that have not told their first objects.
    sources: usize,
    keys: BTreeSet<Str>,
}

impl Progress {
    fn new(sources: usize, left: watch::Sender<Option<usize>>) -> Progress {
        Progress { state: Mutex::new(Unsettled { sources, keys: BTreeSet::new() }), left }
    }

    fn add(&self, queue: &Queue, key: Str) {
        if self.left.borrow().is_none() {
            self.state().keys.insert(key.clone());
        }
        queue.add(key);
    }

    fn source_listed(&self) {
        self.state().sources -= 1;
        self.report();
    }

    fn reconciled(&self, key: &Str) {
        if self.state().keys.remove(key) {
            self.report();
        }
    }

    fn report(&self) {
        let state = self.state();
        if state.sources == 0 {
            self.left.send_replace(Some(state.keys.len()));
        }
    }

    fn state(&self) -> MutexGuard<'_, Unsettled> {
        self.state.lock().expect("no panic under this lock")
    }
}

async fn work(name: &'static str, queue: Queue, reconcile: Reconcile, progress: Arc<Progress>) {
    loop {
        let key = queue.next().await;
        // A panic is this key's failure: a single bad object must not end the server.
        let outcome = AssertUnwindSafe(async { reconcile(key.clone()).await }).catch_unwind().await;
        match outcome.unwrap_or_else(|panic| Err(format!("panicked: {}", panic_message(&*panic)))) {
            Ok(next) => {
                queue.forget(&key);
                match next {
                    Next::Done => {}
                    Next::After(pause) => queue.add_after(key.clone(), pause),
                    Next::Others(keys) => keys.into_iter().for_each(|key| queue.add(key)),
                }
            }
            Err(why) => {
                tracing::warn!(controller = name, key = key.as_str(), err = why, "will be tried again");
                queue.retry(key.clone());
            }
        }
        queue.done(&key);
        progress.reconciled(&key);
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
