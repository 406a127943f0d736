//! Whether every path that is known at the start leads somewhere. Before that, a path that nobody knows may be one that
//! comes a moment later: who hears 404 would take its objects for gone.

use kubelith_http::{BoxHandler, Handler, Reply, Request, negotiated, respond};
use kubelith_meta::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What clients are asked to wait before they try again.
const RETRY_AFTER_SECONDS: i32 = 5;

/// Counts those who have paths to install. Complete if there are none.
#[derive(Clone, Default)]
pub struct Installation {
    awaited: Arc<AtomicUsize>,
}

/// Somebody who has paths to install.
#[must_use]
pub struct Awaited(Arc<AtomicUsize>);

impl Awaited {
    /// All paths lead somewhere. Whoever never comes here (its start failed) stays awaited.
    pub fn done(self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Installation {
    pub fn awaits_one(&self) -> Awaited {
        self.awaited.fetch_add(1, Ordering::AcqRel);
        Awaited(self.awaited.clone())
    }

    fn is_complete(&self) -> bool {
        self.awaited.load(Ordering::Acquire) == 0
    }

    /// Stands in front of all that look for paths: what counts is whether they were there when the request came.
    pub fn before(&self, next: BoxHandler) -> BoxHandler {
        Arc::new(Gate { installation: self.clone(), next })
    }
}

struct Gate {
    installation: Installation,
    next: BoxHandler,
}

impl Handler for Gate {
    fn handle(&self, mut request: Request) -> Reply {
        if !self.installation.is_complete() {
            request.context_mut().early = true;
        }
        self.next.handle(request)
    }
}

/// The end of the chain: nobody knows the path, or nobody knows it yet.
pub fn nobody() -> BoxHandler {
    Arc::new(|request: Request| -> Reply {
        if !request.context().early {
            return Reply::Ready(respond::not_found());
        }
        let why = "the request has been made before all known HTTP paths have been installed, please try again";
        let status = Status::service_unavailable_for(why, RETRY_AFTER_SECONDS);
        Reply::Ready(negotiated::status(request.headers(), false, &status))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Delegate;
    use crate::testing::{ADMIN_TOKEN, TestServer};

    #[tokio::test]
    async fn nothing_is_missing_before_all_is_there() {
        let installation = Installation::default();
        let (one, two) = (installation.awaits_one(), installation.awaits_one());
        let chain = Delegate::end().behind(|next| installation.before(next));
        let server = TestServer::start(|b| b.delegate(chain)).await;
        one.done();
        for path in ["/apis/example.com/v1/namespaces/a/things/b", "/apis/example.com/v1", "/nothing"] {
            let early = server.get(path, ADMIN_TOKEN).await;
            assert_eq!((early.status, early.header("retry-after")), (503, "5"), "{path}");
            assert_eq!(
                early.text(),
                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"the request \
                 has been made before all known HTTP paths have been installed, please try again\",\"reason\":\
                 \"ServiceUnavailable\",\"details\":{\"retryAfterSeconds\":5},\"code\":503}",
            );
        }
        two.done();
        let late = server.get("/apis/example.com/v1", ADMIN_TOKEN).await;
        assert_eq!((late.status, late.text()), (404, "404 page not found\n"));
        server.stop().await.unwrap();
    }
}
