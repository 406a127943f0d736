//! Refuses requests over the budget of a service quality class, and counts what the others use of it.

use super::Layer;
use crate::quality::{Charged, Quality, Refused};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use kubelith_fairness::quality::{Asks, Refusal};
use kubelith_http::{Body, BoxError, Reply, Request, Response, respond};
use kubelith_meta::Status;
use kubelith_meta::text::Quoted;
use kubelith_observe::metrics::requests::RequestMetrics;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

pub fn layer(quality: Arc<Quality>, metrics: Arc<RequestMetrics>) -> Layer {
    Layer::from_fn("service-quality", move |request, next| match quality.charge(&request) {
        Ok(charged) if charged.is_free() || charged.asks() == Asks::ForOther => next.handle(request),
        Ok(charged) => next.handle(request).map(|response| response.map(|body| count(body, charged))),
        Err(refused) => {
            metrics.dropped(&request);
            Reply::Ready(refuse(&request, &refused))
        }
    })
}

fn refuse(request: &Request, Refused { class, refusal }: &Refused) -> Response {
    let what = match refusal {
        Refusal::Requests(_) => "requests per second",
        Refusal::ListBytes(_) => "bytes per second of lists",
        Refusal::Watches => "concurrent watches",
    };
    let user = request.user().map_or("", |user| user.name.as_str());
    let message = format!("{} is over its budget of {what} in service quality class {}", Quoted(user), Quoted(class));
    let seconds = i32::try_from(refusal.retry_after()).unwrap_or(i32::MAX);
    respond::status(request, &Status::too_many_requests(message, seconds))
}

/// A watch is counted until it ends, a list by what is sent of it.
fn count(body: Body, charged: Charged) -> Body {
    if charged.asks() == Asks::ForWatch {
        return body.with_guard(charged);
    }
    if body.is_complete() {
        charged.add_list_bytes(body.size_hint().exact().unwrap_or(0));
        return body;
    }
    Body::Frames(Box::pin(Counted { inner: body, sent: 0, charged }))
}

struct Counted {
    inner: Body,
    sent: u64,
    charged: Charged,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.charged.add_list_bytes(self.sent);
    }
}
