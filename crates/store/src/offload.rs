//! Work that waits for the disk or takes long leaves the async threads. In the simulation there is one thread: the work is done there, a turn
//! later.

use futures::FutureExt;
use futures::future::BoxFuture;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Offload {
    #[default]
    Threads,
    /// By whoever asks for it, once others had a turn.
    #[cfg(test)]
    InPlace,
}

/// Work under way. Dropping it does not end what a thread has begun.
pub(crate) enum Running<T> {
    Thread(JoinHandle<T>),
    #[cfg_attr(not(test), expect(dead_code, reason = "only the simulation does without threads"))]
    InPlace(BoxFuture<'static, T>),
}

impl Offload {
    pub fn call<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Running<T> {
        match self {
            Offload::Threads => Running::Thread(tokio::task::spawn_blocking(work)),
            #[cfg(test)]
            Offload::InPlace => Running::InPlace(a_turn_later(async { work() })),
        }
    }

    /// For work that mostly computes, and may have to wait for something now and then.
    pub fn block_on<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> Running<T> {
        match self {
            Offload::Threads => {
                let runtime = Handle::current();
                Running::Thread(tokio::task::spawn_blocking(move || runtime.block_on(work)))
            }
            #[cfg(test)]
            Offload::InPlace => Running::InPlace(a_turn_later(work)),
        }
    }
}

#[cfg(test)]
fn a_turn_later<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> BoxFuture<'static, T> {
    let mut had_turn = false;
    let turn = std::future::poll_fn(move |cx| match std::mem::replace(&mut had_turn, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    });
    turn.then(|()| work).boxed()
}

impl<T> Future for Running<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Running::Thread(task) => task.poll_unpin(cx),
            Running::InPlace(work) => work.poll_unpin(cx).map(Ok),
        }
    }
}
