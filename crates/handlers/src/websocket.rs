//! A watch over WebSocket: each event is a message, text for JSON and binary for protobuf.
//!
//! The handshake is that of the library the reference uses, with its quirks: a client must say its origin (any), and
//! may ask for one subprotocol at most, which is granted without meaning anything.

use bytes::Bytes;
use futures::{SinkExt, Stream, StreamExt};
use http::header::{CONNECTION, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use kubelith_codec::negotiate::Format;
use kubelith_http::upgrade::{self, OnUpgrade, Upgraded};
use kubelith_http::{Body, BoxError, Request, Response, websocket};
use std::pin::pin;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

const VERSION: &str = "13";
/// Clients have nothing to say on a watch. What they say all the same is read and dropped, up to this size.
const MAX_RECEIVED: usize = 64 << 10;

/// Whether a request wants its connection to become a WebSocket.
pub fn is_requested(headers: &HeaderMap) -> bool {
    let websocket = text(headers, UPGRADE).eq_ignore_ascii_case("websocket");
    websocket && text(headers, CONNECTION).split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

/// Answers the handshake; the events follow once the connection is free.
pub fn serve(
    mut request: Request,
    format: Format,
    events: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> Response {
    let accepted = match handshake(request.headers()) {
        Ok(accepted) => accepted,
        Err(refusal) => return *refusal,
    };
    let Some(connection) = upgrade::on(&mut request) else {
        return refuse(StatusCode::BAD_REQUEST, "not websocket protocol");
    };
    tokio::spawn(send_events(connection, format, events));
    accepted
}

fn handshake(headers: &HeaderMap) -> Result<Response, Box<Response>> {
    let key = text(headers, SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err(refuse(StatusCode::BAD_REQUEST, "mismatch challenge/response").into());
    }
    if text(headers, SEC_WEBSOCKET_VERSION) != VERSION {
        let mut refusal = refuse(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
        refusal.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        return Err(refusal.into());
    }
    if !is_origin(text(headers, ORIGIN)) {
        return Err(refuse(StatusCode::FORBIDDEN, "").into());
    }
    let protocol = text(headers, SEC_WEBSOCKET_PROTOCOL);
    if protocol.contains(',') {
        return Err(refuse(StatusCode::BAD_REQUEST, "").into());
    }
    Ok(websocket::accepted(key.as_bytes(), Some(protocol).filter(|protocol| !protocol.is_empty())))
}

/// An absolute URL or path, as Go's parser of request targets takes it.
fn is_origin(origin: &str) -> bool {
    origin.starts_with('/')
        || origin.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
}

fn refuse(code: StatusCode, why: &'static str) -> Response {
    let mut response = Response::new(Body::from(why));
    *response.status_mut() = code;
    response
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("").trim()
}

async fn send_events(
    connection: OnUpgrade,
    format: Format,
    events: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) {
    let Ok(connection) = connection.await else { return };
    let config = WebSocketConfig::default().max_message_size(Some(MAX_RECEIVED)).max_frame_size(Some(MAX_RECEIVED));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    pump(socket, format, events).await;
}

/// Sends until the events or the client end. Pings are answered by reading.
async fn pump(
    socket: WebSocketStream<Upgraded>,
    format: Format,
    events: impl Stream<Item = Result<Bytes, BoxError>> + Send,
) {
    let (mut sender, mut receiver) = socket.split();
    let mut events = pin!(events);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(frame)) => {
                    let Some(message) = message(format, frame) else { break };
                    if sender.send(message).await.is_err() {
                        return;
                    }
                }
                Some(Err(_)) | None => break,
            },
            received = receiver.next() => match received {
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    websocket::close(&mut sender).await;
}

/// One event as a message. Messages have their own lengths, so protobuf goes without the one in front.
fn message(format: Format, frame: Bytes) -> Option<Message> {
    match format {
        Format::Protobuf => Some(Message::Binary(frame.slice(frame.len().min(4)..))),
        _ => frame.try_into().ok().map(Message::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::SEC_WEBSOCKET_ACCEPT;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn what_is_a_websocket_request() {
        let cases = [
            (&[("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade")][..], true),
            (&[("upgrade", "websocket"), ("connection", "close")], false),
            (&[("upgrade", "SPDY/3.1"), ("connection", "Upgrade")], false),
            (&[], false),
        ];
        for (pairs, want) in cases {
            assert_eq!(is_requested(&headers(pairs)), want, "{pairs:?}");
        }
    }

    #[test]
    fn handshakes() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let version = ("sec-websocket-version", "13");
        let origin = ("origin", "http://localhost");
        let cases = [
            (&[key, version, origin][..], 101),
            (&[version, origin], 400),
            (&[key, ("sec-websocket-version", "8"), origin], 400),
            (&[key, version], 403),
            (&[key, version, ("origin", "null")], 403),
            (&[key, version, origin, ("sec-websocket-protocol", "a")], 101),
            (&[key, version, origin, ("sec-websocket-protocol", "a, b")], 400),
        ];
        for (pairs, want) in cases {
            let response = handshake(&headers(pairs)).unwrap_or_else(|refusal| *refusal);
            assert_eq!(response.status().as_u16(), want, "{pairs:?}");
            if want == 101 {
                assert_eq!(response.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
                let protocol = pairs.iter().find(|(k, _)| *k == "sec-websocket-protocol").map(|(_, v)| *v);
                let granted = response.headers().get(SEC_WEBSOCKET_PROTOCOL).map(|v| v.to_str().unwrap());
                assert_eq!(granted, protocol);
            }
        }
    }

    #[tokio::test]
    async fn a_watch_ends_normally() {
        let (near, far) = tokio::io::duplex(1 << 10);
        let slot = kubelith_http::upgrade::UpgradeSlot::default();
        let mut request: Request = http::Request::builder()
            .extension(slot.clone())
            .body(kubelith_http::RequestBody::Full(None))
            .unwrap()
            .into();
        let connection = upgrade::on(&mut request).unwrap();
        assert!(slot.fulfil(far).is_ok());
        let events = futures::stream::iter([Ok(Bytes::from_static(b"{}"))]);
        tokio::spawn(send_events(connection, Format::Json, events));
        let mut client = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        assert_eq!(client.next().await.unwrap().unwrap(), Message::text("{}"));
        let Message::Close(Some(last)) = client.next().await.unwrap().unwrap() else { panic!("an end without a word") };
        assert_eq!(u16::from(last.code), 1000);
    }

    #[test]
    fn messages_by_format() {
        let json = message(Format::Json, Bytes::from_static(b"{}\n")).unwrap();
        assert_eq!(json, Message::text("{}\n"));
        let proto = message(Format::Protobuf, Bytes::from_static(b"\0\0\0\x01x")).unwrap();
        assert_eq!(proto, Message::binary(&b"x"[..]));
    }
}
