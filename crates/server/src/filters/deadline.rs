//! Fixes by when a short request must be answered: `?timeout=`, at most `--request-timeout`, counted from when
//! it came in.

use super::Layer;
use kubelith_http::{Reply, query, respond};
use kubelith_meta::Status;
use std::time::Duration;

pub fn layer(maximum: Duration) -> Layer {
    Layer::from_fn("request-deadline", move |mut request, next| {
        if request.info().is_long_running() {
            return next.handle(request);
        }
        let asked = match query::first(request.uri().query(), "timeout").filter(|v| !v.is_empty()) {
            None => None,
            Some(value) => match kubelith_meta::time::Duration::parse(&value) {
                Ok(asked) => u64::try_from(asked.as_nanos()).ok().filter(|n| *n > 0).map(Duration::from_nanos),
                Err(why) => {
                    let status = Status::bad_request(format!("invalid timeout specified in the request URL - {why}"));
                    tracing::error!(URI = %request.uri(), "{}", status.message);
                    return Reply::Ready(respond::status(&request, &status));
                }
            },
        };
        let timeout = asked.map_or(maximum, |asked| asked.min(maximum));
        let deadline = request.received().instant + timeout;
        request.context_mut().deadline = Some(deadline);
        next.handle(request)
    })
}
