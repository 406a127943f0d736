//! Counts and times requests that got as far as a handler.

use super::Layer;
use http_body::Body as _;
use kubelith_http::labels::Labels;
use kubelith_http::latency::Part;
use kubelith_http::negotiated::NotRouted;
use kubelith_http::{Request, query};
use kubelith_observe::metrics::reads::CacheRead;
use kubelith_observe::metrics::requests::{DeprecatedApi, RequestMetrics, WatchCounter};
use std::sync::Arc;

pub fn layer(metrics: Arc<RequestMetrics>) -> Layer {
    Layer::from_fn("instrument", move |request, next| {
        let labels = match request.context().labels.clone() {
            Some(labels) => labels.asked_by(request.user()),
            None => Labels::of(&request),
        };
        let long_running = request.info().is_long_running().then(|| metrics.long_running(&labels));
        let received = request.received().instant;
        let latency = request.latency().cloned();
        let validation = written(&request, &metrics);
        for (part, name) in [(Part::Authentication, "authentication"), (Part::Authorization, "authorization")] {
            let took = latency.as_ref().map(|l| l.of(part)).unwrap_or_default();
            if !took.is_zero() {
                metrics.filter_took(name, took);
            }
        }
        let info = request.info().clone();
        let user = metrics.recent.is_kept().then(|| request.user().cloned()).flatten();
        let metrics = metrics.clone();
        next.handle(request).map(move |mut response| {
            let code = response.status().as_u16();
            let size = response.body().size_hint().exact();
            let is_routed = response.extensions_mut().remove::<NotRouted>().is_none();
            if is_routed {
                let took = received.elapsed();
                metrics.answered(&labels, code, took, latency.as_ref(), size);
                if let Some(latency) = &latency {
                    metrics.recent.answered(&user, &info, took, code, latency);
                }
            }
            if let Some(mode) = validation.filter(|_| is_routed) {
                metrics.field_validation(&mode, received.elapsed());
            }
            if let Some(api) = response.extensions_mut().remove::<DeprecatedApi>() {
                metrics.deprecated(&info, &api.removed_release);
            }
            if let Some(read) = response.extensions_mut().remove::<CacheRead>() {
                metrics.read(&labels, read);
            }
            let Some(guard) = long_running else { return response };
            match metrics.watch_events(&labels).filter(|_| code == 200) {
                Some(events) => match response.extensions_mut().remove::<WatchCounter>() {
                    Some(counter) => {
                        counter.set(events);
                        response.map(|body| body.with_guard(guard))
                    }
                    // Of another server: pieces are as near to events as one gets.
                    None => response.map(|body| body.observed(move |size| events.note([size])).with_guard(guard)),
                },
                None => response.map(|body| body.with_guard(guard)),
            }
        })
    })
}

/// What a write is counted by: its size now, its field validation when it is answered.
fn written(request: &Request, metrics: &RequestMetrics) -> Option<String> {
    let info = request.info();
    if !info.is_resource_request || !matches!(info.verb.as_str(), "create" | "update" | "patch") {
        return None;
    }
    if let Ok(size) = request.header("content-length").parse() {
        metrics.body_size(info, size);
    }
    Some(query::first(request.uri().query(), "fieldValidation").unwrap_or_default().into_owned())
}
