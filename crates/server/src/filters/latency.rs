//! Gives each request the trackers of where its time goes.

use super::Layer;
use kubelith_http::latency::Latency;

pub fn layer() -> Layer {
    Layer::from_fn("latency-trackers", |mut request, next| {
        request.context_mut().latency = Some(Latency::default());
        next.handle(request)
    })
}
