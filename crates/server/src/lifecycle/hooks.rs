//! Work that is done once the server serves, and before it stops. A post-start hook is a health check until
//! it is done.

use super::tasks::Tasks;
use crate::loopback::LoopbackClient;
use futures::future::BoxFuture;
use kubelith_observe::metrics::Metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a hook works with.
#[derive(Clone)]
pub struct HookContext {
    /// Calls this server as system:apiserver.
    pub client: LoopbackClient,
    /// For loops that go on after the hook is done.
    pub tasks: Tasks,
    /// Cancelled when the server stops.
    pub stopping: CancellationToken,
    pub metrics: Metrics,
    /// Raised when all hooks are done.
    pub started: CancellationToken,
    /// What a hook leaves to a task, and the server is not settled without: the task holds a token until its first pass ended.
    pub first_passes: TaskTracker,
    /// How many are not.
    pub(crate) left: Arc<AtomicUsize>,
    pub begun: Begun,
}

/// What a server finds when its hooks run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begun {
    /// A store that may have nothing of what a server makes, or what another release made.
    #[default]
    Anew,
    /// All that a server like this one, of this release and with the same options, had made when it was ready. What is made once is
    /// there, as far as nobody took it away since; what is kept up goes on from there.
    AsCopy,
}

type PostStart = Box<dyn FnOnce(HookContext) -> BoxFuture<'static, Result<(), String>> + Send>;
type PreShutdown = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), String>> + Send>;

/// Runs after the server has begun to serve. Must cope with other servers doing the same, with its own
/// half-done work of an earlier life, and with requests before it is done. An error ends the server.
pub struct PostStartHook {
    pub name: String,
    pub(crate) run: PostStart,
    done: Arc<AtomicBool>,
}

impl PostStartHook {
    pub fn new<F>(name: impl Into<String>, run: impl FnOnce(HookContext) -> F + Send + 'static) -> PostStartHook
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        PostStartHook {
            name: name.into(),
            run: Box::new(|context| Box::pin(run(context))),
            done: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Says whether the hook is done, also after it was run.
    pub(crate) fn done(&self) -> Arc<AtomicBool> {
        self.done.clone()
    }

    /// Starts the hook as a task of its own.
    pub(crate) fn start(self, context: HookContext) {
        let tasks = context.tasks.clone();
        let stopping = context.stopping.clone();
        let (left, started) = (context.left.clone(), context.started.clone());
        let PostStartHook { name, run, done } = self;
        let task = format!("poststarthook/{name}");
        tasks.clone().spawn(task, async move {
            match stopping.run_until_cancelled(run(context)).await {
                Some(Ok(())) => {
                    done.store(true, Ordering::Release);
                    if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                        started.cancel();
                    }
                }
                Some(Err(why)) => tasks.fail(format!("PostStartHook {name:?} failed: {why}")),
                None => {}
            }
        });
    }
}

/// Runs when the server was told to stop, while it still serves.
pub struct PreShutdownHook {
    pub name: String,
    pub(crate) run: PreShutdown,
}

impl PreShutdownHook {
    pub fn new<F>(name: impl Into<String>, run: impl FnOnce() -> F + Send + 'static) -> PreShutdownHook
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        PreShutdownHook { name: name.into(), run: Box::new(|| Box::pin(run())) }
    }
}
