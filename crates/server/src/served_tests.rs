//! Clients choose the names in their URLs, but not the series of metrics.

use crate::served::count_what_is_served;
use http::Method;
use kubelith_http::labels::Labels;
use kubelith_http::{Request, RequestBody, RequestInfo};
use kubelith_meta::GroupVersionKind;
use kubelith_observe::metrics::MAX_SERIES;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::reads::CacheRead;
use kubelith_observe::metrics::requests::RequestMetrics;
use kubelith_openapi::discovery::{Discovery, Entry, GroupVersion, Resource, Source, Subresource};
use kubelith_schema::Scope;
use std::sync::Arc;
use std::time::Duration;

fn entry(group: &str, plural: &str, subresource: &str) -> Entry {
    let kind = GroupVersionKind::new(group, "v1", "Kind");
    let subresource = Subresource { name: subresource.into(), kind, verbs: Vec::new() };
    let resource = Resource {
        plural: plural.into(),
        singular: "".into(),
        kind: "Kind".into(),
        scope: Scope::Namespaced,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        stored_as: None,
        subresources: vec![subresource],
    };
    let version = GroupVersion { name: "v1".into(), resources: [resource].into(), ..GroupVersion::default() };
    Entry { group: group.into(), version, group_priority: 0, version_priority: 0 }
}

fn request(path: &str) -> Request {
    let mut request = Request::from(http::Request::builder().uri(path).body(RequestBody::Full(None)).unwrap());
    let info = RequestInfo::parse(&Method::GET, path, request.uri()).unwrap();
    request.context_mut().info = Some(Arc::new(info));
    request
}

/// Everything that can happen to a request.
fn count(metrics: &RequestMetrics, path: &str) {
    let request = request(path);
    let labels = Labels::of(&request);
    metrics.answered(&labels, 404, Duration::ZERO, None, Some(1));
    metrics.dropped(&request);
    metrics.terminated(&labels, 504);
    metrics.body_size(request.info(), 1);
    metrics.deprecated(request.info(), "1.99");
    metrics.read(&labels, CacheRead::FirstEvents { took: Duration::ZERO });
    drop((metrics.long_running(&labels), metrics.watch_events(&labels)));
}

fn series(registry: &Registry) -> usize {
    registry.gather().iter().map(|family| family.get_metric().len()).sum()
}

#[test]
fn nobody_makes_series_of_what_is_not_served() {
    let registry = Registry::new();
    let metrics = RequestMetrics::new(&registry);
    let discovery = Discovery::new("");
    discovery.set(Source::BuiltIn, vec![entry("", "pods", "status")]);
    discovery.set(Source::CustomResources, vec![entry("a.io", "things", "scale")]);
    discovery.set(Source::Aggregated, vec![entry("remote.io", "others", "status")]);
    count_what_is_served(&metrics, discovery.clone());
    let before = series(&registry);
    for path in [
        "/api/v1/namespaces/n/invented",
        "/api/v1/namespaces/n/pods/p/invented",
        "/api/v2/namespaces/n/pods",
        "/apis/invented/v1/pods",
        "/apis/a.io/v1/namespaces/n/things/t/status",
        "/apis/remote.io/v1/others",
    ] {
        count(&metrics, path);
    }
    assert_eq!(series(&registry), before, "invented");
    // Definitions may come and go for ever.
    for i in 0..=MAX_SERIES {
        discovery.set(Source::CustomResources, vec![entry("a.io", &format!("things{i}"), "scale")]);
        metrics.terminated(&Labels::of(&request(&format!("/apis/a.io/v1/things{i}"))), 504);
    }
    let full = series(&registry);
    assert_eq!(full, before + MAX_SERIES, "custom resources are counted");
    discovery.set(Source::CustomResources, vec![entry("b.io", "more", "scale")]);
    count(&metrics, "/apis/b.io/v1/more");
    assert_eq!(series(&registry), full, "up to a limit");
    for path in ["/api/v1/namespaces/n/pods", "/api/v1/namespaces/n/pods/p/status"] {
        let before = series(&registry);
        count(&metrics, path);
        assert!(series(&registry) > before, "what is built in always has a place: {path}");
    }
}
