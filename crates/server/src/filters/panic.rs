//! A panic in a handler is a 500 for its request alone.

use super::Layer;
use crate::lifecycle::tasks::panic_message;
use futures::FutureExt;
use http::StatusCode;
use kubelith_http::{Reply, Response, respond};
use kubelith_meta::Status;
use kubelith_meta::status::ForeignResponse;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub fn layer() -> Layer {
    Layer::from_fn("panic-recovery", |request, next| {
        let method = request.method().clone();
        let uri = request.uri().clone();
        let audit_id = request.audit_id().to_owned();
        let recover = move |panic: Box<dyn Any + Send>| {
            let what = panic_message(&*panic);
            tracing::error!(%method, URI = %uri, auditID = audit_id, panic = what, "apiserver panic'd");
            answer_to_panic(uri.path())
        };
        match catch_unwind(AssertUnwindSafe(|| next.handle(request))) {
            Ok(Reply::Pending(response)) => {
                let response = AssertUnwindSafe(response).catch_unwind();
                Reply::pending(async move { response.await.unwrap_or_else(recover) })
            }
            Ok(ready) => ready,
            Err(panic) => Reply::Ready(recover(panic)),
        }
    })
}

/// APIs answer with a Status, other paths with text, as in the reference.
fn answer_to_panic(path: &str) -> Response {
    let is_api =
        ["/api", "/apis"].iter().any(|p| path.strip_prefix(p).is_some_and(|r| r.is_empty() || r.starts_with('/')));
    if is_api {
        return respond::status_json(&Status::from(ForeignResponse { code: 500, ..ForeignResponse::default() }));
    }
    respond::error_text(
        StatusCode::INTERNAL_SERVER_ERROR,
        "This request caused apiserver to panic. Look in the logs for details.",
    )
}
