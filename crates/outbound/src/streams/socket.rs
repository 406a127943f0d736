//! The client's side: a connection that becomes a WebSocket.

use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderValue, StatusCode};
use kubelith_http::upgrade::Upgraded;
use kubelith_http::{Body, Response, websocket};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

const VERSION: &str = "13";
/// The most that a client may send in one message.
const MAX_MESSAGE: usize = 4 << 20;

pub type Socket = WebSocketStream<Upgraded>;

/// Whether a request wants its connection to become a WebSocket with a protocol that `is_known` knows.
pub fn asks_for(headers: &HeaderMap, is_known: impl Fn(&str) -> bool) -> bool {
    let is_websocket = headers.get(UPGRADE).is_some_and(|u| u.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let connection = headers.get(CONNECTION).and_then(|c| c.to_str().ok()).unwrap_or("");
    is_websocket && connection.to_ascii_lowercase().contains("upgrade") && protocols(headers).any(is_known)
}

/// The protocols that a client offers, the best first.
pub fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|p| p.to_str().ok());
    all.flat_map(|line| line.split(',')).map(str::trim)
}

/// The answer that makes a WebSocket of the connection, or why there will be none.
pub fn accept(headers: &HeaderMap, protocol: Option<&str>) -> Result<Response, Box<Response>> {
    let is_version = headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|v| v == VERSION);
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
    let (Some(key), true) = (key, is_version) else {
        let mut refusal = refuse(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version or Key");
        refusal.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        return Err(refusal.into());
    };
    Ok(websocket::accepted(key.as_bytes(), protocol))
}

pub fn refuse(code: StatusCode, why: &'static str) -> Response {
    let mut response = Response::new(Body::from(why));
    *response.status_mut() = code;
    response
}

pub async fn open(connection: Upgraded) -> Socket {
    let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::SEC_WEBSOCKET_ACCEPT;

    #[test]
    fn who_asks_for_what() {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
        headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("v5.channel.k8s.io, v4.channel.k8s.io"));
        headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("other"));
        assert_eq!(protocols(&headers).collect::<Vec<_>>(), ["v5.channel.k8s.io", "v4.channel.k8s.io", "other"]);
        assert!(asks_for(&headers, |p| p == "v5.channel.k8s.io"));
        assert!(!asks_for(&headers, |p| p == "v3.channel.k8s.io"));
        assert!(accept(&headers, None).is_err_and(|refusal| refusal.status() == StatusCode::BAD_REQUEST));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        let accepted = accept(&headers, Some("v5.channel.k8s.io")).unwrap_or_else(|refusal| *refusal);
        assert_eq!(accepted.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(accepted.headers()[SEC_WEBSOCKET_PROTOCOL], "v5.channel.k8s.io");
        headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
        assert!(!asks_for(&headers, |_| true));
    }
}
