//! The threads that servers run on. A server and its forks share them; the last one to go takes them along.

use crate::{Error, Result};
use std::future::poll_fn;
use std::pin::pin;
use tokio::runtime::{Builder, Runtime};

/// Enough for a test; servers wait most of the time.
const MAX_THREADS: usize = 4;
/// Objects may be nested deeply, and walks over them recurse. Reserved, not used.
const STACK_BYTES: usize = 64 << 20;

pub struct ServerRuntime(Option<Runtime>);

impl ServerRuntime {
    pub fn new() -> Result<ServerRuntime> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_THREADS);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("kubelith")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build();
        runtime.map(|runtime| ServerRuntime(Some(runtime))).map_err(|e| Error(e.to_string()))
    }

    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<T> {
        let runtime = self.0.as_ref().ok_or_else(|| Error("the server is gone".to_owned()))?;
        let done = runtime.spawn(work).await;
        done.map_err(|e| Error(e.to_string()))?.map_err(Error)
    }

    /// Runs on the thread of whoever asks, as if it were one of the server's: for work of which the way to another thread and back would be
    /// the larger part. What it starts runs on the server's threads.
    pub async fn run_here<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T> {
        let runtime = self.0.as_ref().ok_or_else(|| Error("the server is gone".to_owned()))?;
        let mut work = pin!(work);
        let entered = poll_fn(|context| {
            let _runtime = runtime.enter();
            work.as_mut().poll(context)
        });
        entered.await.map_err(Error)
    }
}

impl Drop for ServerRuntime {
    fn drop(&mut self) {
        // Tests drop servers where nothing may wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
