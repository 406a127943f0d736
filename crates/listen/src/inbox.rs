//! Requests of an HTTP/2 connection, from when they were read to when they wait for something.
//!
//! hyper would make a task of each. But most are reads of one object, which need not wait, and a task costs more than
//! their answer. So they are put down here while hyper reads; then the connection's own task begins each, and what is
//! answered at once goes out with one write. The others become tasks.

use super::crowd::Ready;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;

/// hyper's executor for a connection.
#[derive(Clone, Default)]
pub struct Inbox {
    waiting: Arc<Mutex<Vec<Answering>>>,
    ready: Ready,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Inbox {
    fn execute(&self, answering: F) {
        self.waiting().push(Box::pin(answering));
    }
}

impl Inbox {
    /// What is answered by tasks counts as `ready`.
    pub fn new(ready: Ready) -> Inbox {
        Inbox { ready, ..Inbox::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Answering>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins all that was put down. True if there was something, so that there may be answers to send.
    pub fn begin_all(&self) -> bool {
        let waiting = mem::take(&mut *self.waiting());
        let any = !waiting.is_empty();
        for mut answering in waiting {
            // Whom to wake is told by the task that it becomes if it has to wait. A panic ends its request alone.
            let begin = AssertUnwindSafe(|| answering.as_mut().poll(&mut Context::from_waker(Waker::noop())));
            if let Ok(Poll::Pending) = catch_unwind(begin) {
                let ready = self.ready.clone();
                tokio::spawn(async move {
                    answering.await;
                    ready.count();
                });
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::rt::Executor;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_need_not_wait_is_done_at_once_and_the_rest_in_tasks() {
        let inbox = Inbox::default();
        let (go, wait) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let at_once = Arc::new(AtomicUsize::new(0));
        let count = |n: usize| {
            let at_once = at_once.clone();
            move || {
                at_once.fetch_add(n, Ordering::Relaxed);
            }
        };
        assert!(!inbox.begin_all());
        let (first, elsewhere, last) = (count(1), count(10), count(100));
        inbox.execute(async move { first() });
        inbox.execute(async { panic!("one request's own trouble") });
        inbox.execute(async move {
            tokio::task::yield_now().await;
            elsewhere();
            wait.await.unwrap();
            tell.send(()).unwrap();
        });
        inbox.execute(async move { last() });
        assert!(inbox.begin_all());
        assert_eq!(at_once.load(Ordering::Relaxed), 101);
        assert!(!inbox.begin_all());
        go.send(()).unwrap();
        told.await.unwrap();
        assert_eq!(at_once.load(Ordering::Relaxed), 111);
    }
}
