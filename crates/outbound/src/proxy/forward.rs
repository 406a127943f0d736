//! Passing on one request.

use super::headers::{asks_for_upgrade, prepare_request, remove_hop_headers, set_user};
use super::{Identity, ProxyError, Target, Transport, body, upgrade};
use bytes::Bytes;
use http::header::{HOST, HeaderName, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use http_body::Body as _;
use kubelith_auth::User;
use kubelith_http::{Body, Request, RequestBody, Response, respond};
use std::sync::Arc;

const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// How a request is passed on.
#[derive(Debug, Clone)]
pub struct Forward {
    /// Tell the server in `X-Remote-*` who asks. It must believe these headers from us only.
    pub user: Option<(Arc<User>, Identity)>,
    pub redirects: Redirects,
    pub host: HostHeader,
    pub origin: Origin,
}

/// Where the server is told that it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Where it is.
    Server,
    /// Below this path of ours: links to itself must begin with it.
    Below(String),
}

/// What becomes of an answer that sends the client elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// 502: credentials that the client attaches must not follow.
    Refuse,
    Pass,
}

/// Which `Host` the server sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostHeader {
    /// Its own address.
    Server,
    /// The one that the client sent.
    Client,
}

/// Sends `request` to `target` and answers with what comes back: only its head is waited for. If the client asks for
/// an upgrade and the server agrees, their connections are joined.
pub async fn forward(
    transport: &Transport,
    target: Target,
    mut request: Request,
    how: &Forward,
) -> Result<Response, ProxyError> {
    let upgrading = asks_for_upgrade(request.headers());
    let on_upgrade = upgrading.then(|| kubelith_http::upgrade::on(&mut request)).flatten();
    let client = request.connection().map(|c| c.remote.ip());
    let audit_id = audit_id(&request);
    let (parts, body) = request.into_parts();
    let mut headers = parts.headers;
    let protocol = headers.get(http::header::UPGRADE).cloned();
    prepare_request(&mut headers, client);
    if let Some((user, identity)) = &how.user {
        set_user(&mut headers, user, *identity)?;
    }
    if how.host == HostHeader::Server {
        headers.remove(HOST);
    }
    if let Some(id) = audit_id {
        headers.insert(AUDIT_ID, id);
    }
    if upgrading {
        let head = upgrade::Head { method: parts.method, headers, protocol };
        return upgrade::forward(transport, target, head, body, on_upgrade).await;
    }
    tell_origin(&mut headers, transport, &target, &how.origin);
    let hosts = match &how.origin {
        Origin::Server => None,
        Origin::Below(_) => Some([
            Some(target.authority.to_string()),
            headers.get(HOST).and_then(|h| h.to_str().ok()).map(str::to_owned),
        ]),
    };
    let response = exchange(transport, target, parts.method, headers, body).await?;
    let mut answer = answer(response, how.redirects)?;
    if let (Origin::Below(prefix), Some(hosts)) = (&how.origin, &hosts)
        && let Some(new) = answer.headers().get(LOCATION).and_then(|l| location_below(l.to_str().ok()?, prefix, hosts))
    {
        answer.headers_mut().insert(LOCATION, new);
    }
    Ok(answer)
}

fn audit_id(request: &Request) -> Option<HeaderValue> {
    HeaderValue::from_str(request.audit_id()).ok().filter(|v| !v.is_empty())
}

/// Adds to `headers` those of a request that servers behind the proxy see, but for `dropped`.
pub fn pass_headers(headers: &mut HeaderMap, request: &Request, dropped: &[HeaderName]) {
    let mut passed = request.headers().clone();
    prepare_request(&mut passed, request.connection().map(|c| c.remote.ip()));
    for name in dropped {
        passed.remove(name);
    }
    passed.extend(std::mem::take(headers));
    if let Some(id) = audit_id(request) {
        passed.insert(AUDIT_ID, id);
    }
    *headers = passed;
}

/// A link of a server to itself, as our clients must write it; `None` if it needs no change.
fn location_below(location: &str, prefix: &str, hosts: &[Option<String>]) -> Option<HeaderValue> {
    let uri: http::Uri = location.parse().ok()?;
    let own = uri.authority().is_none_or(|a| hosts.iter().flatten().any(|h| a.as_str() == h));
    if !own || !uri.path().starts_with('/') || location.is_empty() {
        return None;
    }
    let rest = uri.path_and_query().map_or("/", |p| p.as_str());
    let new = if uri.path().starts_with(prefix) { rest.to_owned() } else { format!("{prefix}{rest}") };
    HeaderValue::from_str(&new).ok()
}

fn tell_origin(headers: &mut HeaderMap, transport: &Transport, target: &Target, origin: &Origin) {
    if let Origin::Below(prefix) = origin {
        if let Ok(path) = HeaderValue::from_str(&format!("{prefix}{}", target.path_and_query.path())) {
            headers.insert(X_FORWARDED_URI, path);
        }
        return;
    }
    if let Ok(path) = HeaderValue::from_str(target.path_and_query.path()) {
        headers.insert(X_FORWARDED_URI, path);
    }
    if let Ok(host) = HeaderValue::from_str(target.authority.as_str()) {
        headers.insert(X_FORWARDED_HOST, host);
    }
    let scheme = if transport.scheme() == http::uri::Scheme::HTTPS { "https" } else { "http" };
    headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme));
}

/// A request without a body that met a connection which the server had just closed is sent once more.
async fn exchange(
    transport: &Transport,
    target: Target,
    method: Method,
    headers: HeaderMap,
    body: RequestBody,
) -> Result<http::Response<hyper::body::Incoming>, ProxyError> {
    let repeatable = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS) && body.is_end_stream();
    let uri = transport.uri(target)?;
    let build = |headers: HeaderMap, body: RequestBody| {
        let mut request = http::Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri.clone();
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = headers;
        request
    };
    let again = repeatable.then(|| headers.clone());
    match (transport.send(build(headers, body)).await, again) {
        (Ok(response), _) => Ok(response),
        (Err(failed), Some(headers)) if failed.connection_was_stale => {
            let second = transport.send(build(headers, RequestBody::Full(None))).await;
            second.map_err(|failed| ProxyError::Unreachable(failed.text))
        }
        (Err(failed), _) => Err(ProxyError::Unreachable(failed.text)),
    }
}

fn answer(response: http::Response<hyper::body::Incoming>, redirects: Redirects) -> Result<Response, ProxyError> {
    let (mut parts, incoming) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        let protocol = parts.headers.get(http::header::UPGRADE).and_then(|v| v.to_str().ok()).unwrap_or("");
        let text = format!("backend tried to switch protocol {protocol:?} when \"\" was requested");
        return Err(ProxyError::BadAnswer(text));
    }
    if redirects == Redirects::Refuse
        && parts.status.is_redirection()
        && parts.headers.get(LOCATION).is_some_and(|l| !l.is_empty())
    {
        let text = "the backend attempted to redirect this request, which is not permitted";
        let mut refused = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
        *refused.status_mut() = StatusCode::BAD_GATEWAY;
        // Without a type the client's library would guess it; text is what it would find.
        refused.headers_mut().insert(http::header::CONTENT_TYPE, respond::TEXT);
        return Ok(refused);
    }
    remove_hop_headers(&mut parts.headers);
    let mut out = Response::new(body::passed(incoming));
    *out.status_mut() = parts.status;
    *out.headers_mut() = parts.headers;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_server_to_itself_are_put_below_ours() {
        let hosts = [Some("10.0.0.1:80".to_owned()), Some("api.test".to_owned())];
        for (location, want) in [
            ("/login?x=1", Some("/proxy/login?x=1")),
            ("http://10.0.0.1:80/login", Some("/proxy/login")),
            ("https://api.test/login", Some("/proxy/login")),
            ("/proxy/login", Some("/proxy/login")),
            ("https://elsewhere.test/login", None),
            ("login", None),
        ] {
            let got = location_below(location, "/proxy", &hosts);
            assert_eq!(got.as_ref().map(|v| v.to_str().unwrap()), want, "{location}");
        }
    }
}
