//! Writes that passed admission run to their end, whatever becomes of the client.

use futures::future::BoxFuture;
use kubelith_meta::Status;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Runs `write` where it is awaited. If that future is dropped before its end, the rest becomes a task of its own: only
/// those whose client leaves cost one.
pub fn run_to_end<T: Send + 'static>(
    write: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> impl Future<Output = Result<T, Status>> + Send {
    ToEnd { rest: Some(Box::pin(write)) }
}

struct ToEnd<T: Send + 'static> {
    rest: Option<BoxFuture<'static, T>>,
}

impl<T: Send + 'static> Future for ToEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
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
            runtime.spawn(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn goes_on_without_whoever_waited() {
        let (go, wait) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let write = run_to_end(async move {
            wait.await.map_err(Status::internal_error)?;
            tell.send("written").map_err(Status::internal_error)
        });
        assert!(write.now_or_never().is_none());
        go.send(()).unwrap();
        assert_eq!(told.await, Ok("written"));
    }

    #[tokio::test]
    async fn says_how_it_ended() {
        assert_eq!(run_to_end(async { Ok(1) }).await, Ok(1));
        let denied = Status::bad_request("no");
        assert_eq!(run_to_end::<()>(std::future::ready(Err(denied.clone()))).await, Err(denied));
    }

    #[tokio::test]
    async fn a_panic_is_the_callers() {
        let write = run_to_end::<()>(async {
            tokio::task::yield_now().await;
            panic!("trouble")
        });
        assert!(std::panic::AssertUnwindSafe(write).catch_unwind().await.is_err());
    }
}
