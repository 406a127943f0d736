//! Writes that passed admission run to their end, whatever becomes of the client.

use futures::FutureExt;
use futures::future::BoxFuture;
use kubelith_http::late::{Late, LateWrites};
use kubelith_meta::Status;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;

/// Who wants to hear how a write ended waits so long, as in the reference.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Runs `write` where it is awaited. If that future is dropped before its end, the rest becomes a task of its own: only
/// those whose client leaves cost one. `late` is told how those end.
pub fn run_to_end<T: Send + 'static>(
    late: Option<Arc<dyn LateWrites>>,
    write: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> impl Future<Output = Result<T, Status>> + Send {
    ToEnd { rest: Some(Box::pin(write)), late }
}

struct ToEnd<T: Send + 'static> {
    rest: Option<BoxFuture<'static, Result<T, Status>>>,
    late: Option<Arc<dyn LateWrites>>,
}

impl<T: Send + 'static> Future for ToEnd<T> {
    type Output = Result<T, Status>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out, so that what panics is not run again.
        let mut rest = self.rest.take().expect("not polled after its end");
        let state = rest.as_mut().poll(cx);
        if state.is_pending() {
            self.rest = Some(rest);
        }
        state
    }
}

impl<T: Send + 'static> Drop for ToEnd<T> {
    fn drop(&mut self) {
        // Without a runtime the whole program ends.
        if let (Some(rest), Ok(runtime)) = (self.rest.take(), Handle::try_current()) {
            runtime.spawn(end(rest, self.late.take()));
        }
    }
}

async fn end<T>(rest: BoxFuture<'static, Result<T, Status>>, late: Option<Arc<dyn LateWrites>>) {
    let mut rest = AssertUnwindSafe(rest).catch_unwind();
    let how = match tokio::time::timeout(PATIENCE, &mut rest).await {
        Ok(Ok(Ok(_))) => Late::Done,
        Ok(Ok(Err(_))) => Late::Failed,
        Ok(Err(_)) => Late::Panicked,
        Err(_) => Late::Pending,
    };
    late.inspect(|late| late.ended(how));
    if how == Late::Pending {
        let _ = rest.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn goes_on_without_whoever_waited() {
        let (go, wait) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let write = run_to_end(None, async move {
            wait.await.map_err(Status::internal_error)?;
            tell.send("written").map_err(Status::internal_error)
        });
        assert!(write.now_or_never().is_none());
        go.send(()).unwrap();
        assert_eq!(told.await, Ok("written"));
    }

    #[tokio::test]
    async fn says_how_it_ended() {
        assert_eq!(run_to_end(None, async { Ok(1) }).await, Ok(1));
        let denied = Status::bad_request("no");
        assert_eq!(run_to_end::<()>(None, std::future::ready(Err(denied.clone()))).await, Err(denied));
    }

    #[tokio::test]
    async fn a_panic_is_the_callers() {
        let write = run_to_end::<()>(None, async {
            tokio::task::yield_now().await;
            panic!("trouble")
        });
        assert!(std::panic::AssertUnwindSafe(write).catch_unwind().await.is_err());
    }

    #[derive(Default)]
    struct Heard(Mutex<Vec<Late>>);

    impl LateWrites for Heard {
        fn ended(&self, how: Late) {
            self.0.lock().unwrap().push(how);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_hears_how_those_end_that_nobody_waits_for() {
        let heard = Arc::new(Heard::default());
        let left = |write: BoxFuture<'static, Result<(), Status>>| {
            assert!(run_to_end(Some(heard.clone()), write).now_or_never().is_none());
        };
        let later = || tokio::time::sleep(Duration::from_secs(1));
        run_to_end(Some(heard.clone()), async { Ok(()) }).await.unwrap();
        left(Box::pin(later().map(Ok)));
        tokio::time::sleep(Duration::from_secs(2)).await;
        left(Box::pin(later().map(|()| Err(Status::bad_request("no")))));
        tokio::time::sleep(Duration::from_secs(2)).await;
        left(Box::pin(later().map(|()| panic!("trouble"))));
        left(Box::pin(std::future::pending()));
        tokio::time::sleep(PATIENCE * 2).await;
        let heard = heard.0.lock().unwrap();
        assert_eq!(*heard, [Late::Done, Late::Failed, Late::Panicked, Late::Pending]);
    }
}
