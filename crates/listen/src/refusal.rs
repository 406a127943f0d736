//! What is refused before any filter sees it, as the reference's HTTP/1.1 server does: requests that do not say
//! clearly which host they mean, or expect what nobody knows, or come in an encoding that nobody reads.

use http::header::{CONNECTION, CONTENT_TYPE, EXPECT, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use hyper::ext::ReasonPhrase;
use kubelith_http::{Body, Response};

/// The answer to a request of HTTP/1 that goes no further.
pub fn of<B>(request: &Request<B>) -> Option<Response> {
    let headers = request.headers();
    let is_current = request.version() >= Version::HTTP_11;
    if is_current && !has_known_encoding(headers) {
        return Some(plain(StatusCode::NOT_IMPLEMENTED, "Unsupported transfer encoding"));
    }
    // What has no slash and no scheme is no target; with a colon it passes for an opaque one.
    let is_bare = request.uri().scheme().is_none() && request.uri().authority().is_some_and(|a| a.port().is_none());
    if is_bare && request.method() != Method::CONNECT {
        return Some(plain(StatusCode::BAD_REQUEST, "400 Bad Request"));
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return Some(plain(StatusCode::BAD_REQUEST, "400 Bad Request")),
        (Some(host), None) if !host.as_bytes().iter().copied().all(may_be_in_host) => {
            return Some(bad_request("400 Bad Request: malformed Host header"));
        }
        (None, None) if is_current && request.method() != Method::CONNECT => {
            return Some(bad_request("400 Bad Request: missing required Host header"));
        }
        _ => {}
    }
    if is_current && headers.get(EXPECT).is_some_and(|expect| !expect.is_empty() && !expects_continue(expect)) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::EXPECTATION_FAILED;
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return Some(response);
    }
    // Of the server as a whole.
    (request.method() == Method::OPTIONS && request.uri().path() == "*").then(|| Response::new(Body::empty()))
}

/// Some statuses had another name when the reference's library was written.
pub fn name_status(response: &mut Response) {
    if response.status() == StatusCode::PAYLOAD_TOO_LARGE {
        response.extensions_mut().insert(ReasonPhrase::from_static(b"Request Entity Too Large"));
    }
}

fn has_known_encoding(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => true,
        (Some(only), None) => only.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

fn expects_continue(expect: &HeaderValue) -> bool {
    let mut tokens = expect.as_bytes().split(|b| matches!(b, b' ' | b'\t' | b','));
    tokens.any(|token| token.eq_ignore_ascii_case(b"100-continue"))
}

fn may_be_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(&byte)
}

/// The reason is in the status line, too.
fn bad_request(text: &'static str) -> Response {
    let mut response = plain(StatusCode::BAD_REQUEST, text);
    response.extensions_mut().insert(ReasonPhrase::from_static(&text.as_bytes()["400 ".len()..]));
    response
}

fn plain(code: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn unclear_requests_are_refused() {
        const NO_HOST: &str = "400 Bad Request: missing required Host header";
        const BAD_HOST: &str = "400 Bad Request: malformed Host header";
        type Case =
            (&'static str, &'static str, Version, &'static [(&'static str, &'static str)], Option<(u16, &'static str)>);
        let v = Version::HTTP_11;
        let cases: [Case; 18] = [
            ("GET", "/x", v, &[("host", "a.example:1")], None),
            ("GET", "/x", v, &[("host", "")], None),
            ("GET", "/x", v, &[], Some((400, NO_HOST))),
            ("CONNECT", "a:1", v, &[], None),
            ("GET", "/x", Version::HTTP_10, &[], None),
            ("GET", "/x", v, &[("host", "a"), ("host", "a")], Some((400, "400 Bad Request"))),
            ("GET", "/x", v, &[("host", "a b")], Some((400, BAD_HOST))),
            ("GET", "/x", Version::HTTP_10, &[("host", "a/b")], Some((400, BAD_HOST))),
            ("GET", "version", v, &[("host", "a")], Some((400, "400 Bad Request"))),
            ("GET", "https://b.example/x", v, &[("host", "a")], None),
            ("POST", "/x", v, &[("host", "a"), ("transfer-encoding", "Chunked")], None),
            (
                "POST",
                "/x",
                v,
                &[("host", "a"), ("transfer-encoding", "gzip, chunked")],
                Some((501, "Unsupported transfer encoding")),
            ),
            (
                "POST",
                "/x",
                v,
                &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
                Some((501, "Unsupported transfer encoding")),
            ),
            ("GET", "/x", v, &[("host", "a"), ("expect", "100-Continue")], None),
            ("GET", "/x", v, &[("host", "a"), ("expect", "200-ok")], Some((417, ""))),
            ("GET", "/x", Version::HTTP_10, &[("host", "a"), ("expect", "200-ok")], None),
            ("OPTIONS", "*", v, &[("host", "a")], Some((200, ""))),
            ("GET", "*", v, &[("host", "a")], None),
        ];
        for (method, uri, version, headers, expected) in cases {
            let mut request = Request::builder().method(method).uri(uri).version(version);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let answer = match of(&request.body(()).unwrap()) {
                Some(response) => {
                    let code = response.status().as_u16();
                    Some((code, response.into_body().collect().await.unwrap().to_bytes()))
                }
                None => None,
            };
            let expected = expected.map(|(code, text)| (code, bytes::Bytes::from_static(text.as_bytes())));
            assert_eq!(answer, expected, "{method} {uri} {headers:?}");
        }
    }
}
