//! Events in batches, written by a task of their own.

use super::backend::{Backend, Written};
use super::event::Event;
use crate::metrics::Counter;
use futures::stream::{FuturesUnordered, StreamExt};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq)]
pub struct BatchOptions {
    /// Events that may wait; beyond it they are lost.
    pub buffer: usize,
    pub max_size: usize,
    /// Time after which a batch is written though it is not full.
    pub max_wait: Duration,
    pub throttle: Option<Throttle>,
    /// Batches under way at once; the next one waits. One for backends that write in order.
    pub concurrency: usize,
}

/// Batches per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    pub qps: f64,
    pub burst: usize,
}

/// The way into a batch worker.
pub struct Batch {
    sender: Mutex<Option<mpsc::Sender<Arc<Event>>>>,
    finished: Mutex<Option<oneshot::Receiver<()>>>,
    lost: Counter,
}

impl Batch {
    pub fn start(backend: Arc<dyn Backend>, options: BatchOptions, lost: Counter, errors: Counter) -> Batch {
        let (sender, receiver) = mpsc::channel(options.buffer.max(1));
        let (finish, finished) = oneshot::channel();
        tokio::spawn(async move {
            Worker { backend, bucket: options.throttle.map(Bucket::new), options, errors }.run(receiver).await;
            let _ = finish.send(());
        });
        Batch { sender: Mutex::new(Some(sender)), finished: Mutex::new(Some(finished)), lost }
    }

    /// Never waits: a full buffer loses the event.
    pub fn push(&self, event: Arc<Event>) {
        let sender = self.sender.lock().unwrap_or_else(|e| e.into_inner());
        let why = match sender.as_ref().map(|s| s.try_send(event)) {
            Some(Ok(())) => return,
            Some(Err(_)) => "audit buffer queue blocked",
            None => "audit backend shut down",
        };
        self.lost.inc();
        tracing::error!(plugin = "buffered", err = why, "Error in audit plugin affecting 1 audit events");
    }

    /// Takes no more events and waits until the last is written.
    pub async fn drain(&self) {
        self.sender.lock().unwrap_or_else(|e| e.into_inner()).take();
        let finished = self.finished.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(finished) = finished {
            let _ = finished.await;
        }
    }
}

struct Worker {
    backend: Arc<dyn Backend>,
    options: BatchOptions,
    bucket: Option<Bucket>,
    errors: Counter,
}

impl Worker {
    async fn run(mut self, mut receiver: mpsc::Receiver<Arc<Event>>) {
        let mut under_way = FuturesUnordered::new();
        let mut open = true;
        while open {
            let mut events = Vec::new();
            open = tokio::select! {
                open = collect(&mut receiver, &mut events, &self.options) => open,
                // Batches under way go on while the next one fills.
                () = drive(&mut under_way) => unreachable!("it never ends"),
            };
            if events.is_empty() {
                continue;
            }
            if let Some(bucket) = &mut self.bucket {
                bucket.take().await;
            }
            while under_way.len() >= self.options.concurrency.max(1) {
                under_way.next().await;
            }
            under_way.push(write(self.backend.clone(), events, self.errors.clone()));
        }
        while under_way.next().await.is_some() {}
    }
}

/// Fills a batch. False once no more events will come. Dropped, it loses nothing but its place in time: events stay in
/// `events`.
async fn collect(
    receiver: &mut mpsc::Receiver<Arc<Event>>,
    events: &mut Vec<Arc<Event>>,
    options: &BatchOptions,
) -> bool {
    let size = options.max_size.max(1);
    if size == 1 {
        return match receiver.recv().await {
            Some(event) => {
                events.push(event);
                true
            }
            None => false,
        };
    }
    let until = Instant::now() + options.max_wait;
    while events.len() < size {
        match tokio::time::timeout_at(until, receiver.recv()).await {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return false,
            Err(_) => break,
        }
    }
    true
}

/// Polls what is under way for as long as it is waited for.
async fn drive<F: Future<Output = ()>>(under_way: &mut FuturesUnordered<F>) {
    loop {
        if under_way.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

async fn write(backend: Arc<dyn Backend>, events: Vec<Arc<Event>>, errors: Counter) {
    let count = events.len();
    let result = match backend.write(events) {
        Written::Now(result) => result,
        Written::Later(later) => later.await,
    };
    if let Err(why) = result {
        errors.inc_by(count as u64);
        tracing::error!(plugin = backend.name(), err = %why, "Error in audit plugin affecting {count} audit events");
    }
}

/// A token bucket.
struct Bucket {
    throttle: Throttle,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn new(throttle: Throttle) -> Bucket {
        Bucket { throttle, tokens: throttle.burst as f64, at: Instant::now() }
    }

    async fn take(&mut self) {
        let now = Instant::now();
        let refilled = self.tokens + now.duration_since(self.at).as_secs_f64() * self.throttle.qps;
        (self.tokens, self.at) = (refilled.min(self.throttle.burst as f64) - 1.0, now);
        if self.tokens < 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(-self.tokens / self.throttle.qps)).await;
        }
    }
}
