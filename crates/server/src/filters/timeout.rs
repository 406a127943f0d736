//! Answers 504 when a short request's time is up, and breaks off an answer that is still being sent then.
//!
//! The request's future is dropped: reads end, a write that passed admission runs to its end in a task of its
//! own.

use super::Layer;
use http::StatusCode;
use kubelith_http::labels::Labels;
use kubelith_http::{Reply, Response, respond};
use kubelith_meta::Status;
use kubelith_observe::metrics::requests::RequestMetrics;
use std::sync::Arc;

pub fn layer(metrics: Arc<RequestMetrics>) -> Layer {
    Layer::from_fn("timeout", move |mut request, next| {
        let Some(deadline) = request.deadline() else {
            return next.handle(request);
        };
        let labels = Labels::of(&request);
        request.context_mut().labels = Some(labels.clone());
        let in_time = move |response: Response| response.map(|body| body.with_deadline(deadline));
        let response = match next.handle(request) {
            Reply::Ready(response) => return Reply::Ready(in_time(response)),
            Reply::Pending(response) => response,
        };
        let metrics = metrics.clone();
        Reply::pending(async move {
            match tokio::time::timeout_at(deadline, response).await {
                Ok(response) => in_time(response),
                Err(_) => {
                    metrics.terminated(&labels, 504);
                    timed_out()
                }
            }
        })
    })
}

/// The reference writes this Status without kind and version, and with the content type that Go guesses.
fn timed_out() -> Response {
    let status = Status::timeout("request did not complete within the allotted timeout", 0);
    let json = status.to_json().replacen(r#""kind":"Status","apiVersion":"v1","#, "", 1);
    respond::text(StatusCode::GATEWAY_TIMEOUT, json + "\n")
}
