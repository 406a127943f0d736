//! Counts and times requests that got as far as a handler.

use super::Layer;
use crate::context::{Latency, RequestExt};
use crate::metrics::requests::{Labels, RequestMetrics};
use http_body::Body as _;
use std::sync::Arc;

pub fn layer(metrics: Arc<RequestMetrics>) -> Layer {
    Layer::from_fn("instrument", move |request, next| {
        let labels = Labels::of(&request);
        let long_running = request.info().is_long_running().then(|| metrics.long_running(&labels));
        let received = request.received().instant;
        let latency = request.extensions().get::<Latency>().cloned();
        let metrics = metrics.clone();
        let response = next.handle(request);
        Box::pin(async move {
            let response = response.await;
            let code = response.status().as_u16();
            let size = response.body().size_hint().exact();
            metrics.answered(&labels, code, received.elapsed(), latency.as_ref(), size);
            match long_running {
                Some(guard) => response.map(|body| body.with_guard(guard)),
                None => response,
            }
        })
    })
}
