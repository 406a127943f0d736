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
use tokio::time::Instant;

pub fn layer(metrics: Arc<RequestMetrics>) -> Layer {
    Layer::from_fn("timeout", move |mut request, next| {
        let labels = Labels::of(&request);
        let deadline = request.deadline();
        request.context_mut().labels = Some(labels.clone());
        if deadline.is_some() {
            request.context_mut().late = Some(metrics.clone());
        }
        // A watch ends in order, whatever happens.
        if deadline.is_none() && labels.verb == "WATCH" {
            return next.handle(request);
        }
        let (metrics, about) = (metrics.clone(), labels.clone());
        let counting = metrics.clone();
        let in_time = move |response: Response| {
            response.map(|body| {
                body.with_deadline(deadline, move || {
                    counting.aborted(&about);
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        counting.left(&about);
                    }
                })
            })
        };
        let response = match next.handle(request) {
            Reply::Ready(response) => return Reply::Ready(in_time(response)),
            Reply::Pending(response) => response,
        };
        let Some(deadline) = deadline else {
            return Reply::pending(async move { in_time(response.await) });
        };
        Reply::pending(async move {
            let mut leaving = Leaving { metrics, labels: Some(labels) };
            match tokio::time::timeout_at(deadline, response).await {
                Ok(response) => {
                    leaving.labels = None;
                    in_time(response)
                }
                Err(_) => timed_out(),
            }
        })
    })
}

/// Counts a request that ends without its own answer: at its deadline, or because the client left.
struct Leaving {
    metrics: Arc<RequestMetrics>,
    labels: Option<Labels>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // A panic is an answer, too: 500.
        if let (Some(labels), false) = (&self.labels, std::thread::panicking()) {
            self.metrics.left(labels);
        }
    }
}

/// The reference writes this Status without kind and version, and with the content type that Go guesses.
fn timed_out() -> Response {
    let status = Status::timeout("request did not complete within the allotted timeout", 0);
    let json = status.to_json().replacen(r#""kind":"Status","apiVersion":"v1","#, "", 1);
    respond::text(StatusCode::GATEWAY_TIMEOUT, json + "\n")
}
