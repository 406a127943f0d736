//! The answer by which a connection becomes a WebSocket, and its end. What of a request is looked at before differs by who takes it.

use crate::{Body, Response};
use futures::{Sink, SinkExt};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

/// `key` is the client's, `protocol` the one that is granted.
pub fn accepted(key: &[u8], protocol: Option<&str>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) {
        answer.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(Ok(protocol)) = protocol.map(HeaderValue::from_str) {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    response
}

/// Ends a WebSocket in order: kubectl takes an end without a code for a failure, whatever came before. Who is gone need not be told.
pub async fn close(to_client: &mut (impl Sink<Message> + Unpin)) {
    let last = CloseFrame { code: CloseCode::Normal, reason: Default::default() };
    let _ = to_client.send(Message::Close(Some(last))).await;
    let _ = to_client.close().await;
}
