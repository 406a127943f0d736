//! A span for each request that is traced.

use super::Layer;
use kubelith_auth::user::GROUP_MASTERS;
use kubelith_http::{Request, RequestInfo};
use kubelith_observe::spans::{Attribute, Caller, CurrentSpan, TraceContext, Tracer};
use std::sync::Arc;

/// Who watches the server may trace it.
const GROUP_MONITORING: &str = "system:monitoring";

pub fn layer(tracer: Tracer) -> Layer {
    let tracer = Arc::new(tracer);
    Layer::from_fn("tracing", move |mut request, next| {
        let incoming = TraceContext::parse(request.header("traceparent"));
        let Some(begun) = tracer.begin(incoming, caller(&request)) else { return next.handle(request) };
        let start = request.received().at;
        let name = name(&request);
        let mut attributes = attributes(&request);
        request.extensions_mut().insert(CurrentSpan { tracer: tracer.clone(), context: begun.context });
        let tracer = tracer.clone();
        next.handle(request).map(move |response| {
            let code = response.status();
            attributes.push(("http.response.status_code", Attribute::Number(code.as_u16().into())));
            let failed = code.is_server_error();
            tracer.finish(begun, |span| kubelith_observe::spans::Span { name, start, attributes, failed, ..span });
            response
        })
    })
}

fn caller(request: &Request) -> Caller {
    let trusted =
        |user: &Arc<kubelith_auth::User>| user.groups.iter().any(|g| g == GROUP_MASTERS || g == GROUP_MONITORING);
    if request.user().is_some_and(trusted) { Caller::Trusted } else { Caller::Stranger }
}

/// The method and, for resources, the path without what differs from object to object.
fn name(request: &Request) -> String {
    let (method, info) = (request.method(), request.info());
    if !info.is_resource_request {
        return method.to_string();
    }
    let RequestInfo { group, version, resource, subresource, .. } = &**info;
    let mut name = if group.is_empty() { format!("{method} /api") } else { format!("{method} /apis/{group}") };
    name += &format!("/{version}");
    if !info.namespace.is_empty() {
        name += "/namespaces/{:namespace}";
    }
    name += &format!("/{resource}");
    if !info.name.is_empty() {
        name += "/{:name}";
    }
    if !subresource.is_empty() {
        name += &format!("/{subresource}");
    }
    name
}

fn attributes(request: &Request) -> Vec<(&'static str, Attribute)> {
    let target = request.uri().path_and_query().map_or("/", |p| p.as_str());
    let texts = [
        ("http.request.method", request.method().as_str()),
        ("http.target", target),
        ("url.path", request.uri().path()),
        ("user_agent.original", request.header("user-agent")),
        ("audit-id", request.audit_id()),
    ];
    texts.into_iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k, Attribute::Text(v.to_owned()))).collect()
}
