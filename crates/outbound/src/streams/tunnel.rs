//! Port-forward: SPDY that a client speaks in the messages of a WebSocket, passed on as it is.

use super::command::{SPDY, is_spdy};
use super::socket::{self, Socket};
use crate::pace::Pace;
use crate::proxy::{Head, Opened, ProxyError, Target, Transport, open_upgraded};
use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use http::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use kubelith_http::{Request, RequestBody, Response, upgrade, websocket};
use std::num::NonZeroU32;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;

const PREFIX: &str = "SPDY/3.1+";
const SUFFIX: &str = ".k8s.io";
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// Sent in one message at most.
const MAX_PIECE: usize = 32 << 10;

/// Whether a protocol of a WebSocket is SPDY in disguise.
pub fn is_tunnel(protocol: &str) -> bool {
    protocol.starts_with(PREFIX) && protocol.ends_with(SUFFIX)
}

/// Asks the kubelet to speak SPDY, then answers the client's handshake; a refusal of the kubelet is passed on. `count` hears
/// how that ended.
pub async fn serve(
    mut request: Request,
    transport: &Transport,
    target: Target,
    count: impl Fn(u16),
) -> Result<Response, ProxyError> {
    let mut headers = HeaderMap::new();
    for protocol in socket::protocols(request.headers()).filter(|p| is_tunnel(p)) {
        if let Ok(protocol) = HeaderValue::from_str(&protocol[PREFIX.len()..]) {
            headers.append(STREAM_PROTOCOL, protocol);
        }
    }
    let connection = upgrade::on(&mut request).ok_or(ProxyError::NoConnection)?;
    crate::proxy::pass_headers(
        &mut headers,
        &request,
        &[SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION],
    );
    let head = Head { method: Method::POST, headers, protocol: Some(SPDY) };
    let (headers, kubelet) = match open_upgraded(transport, target, head, RequestBody::Full(None)).await? {
        Opened::Refused(answer) => {
            count(answer.status().as_u16());
            return Ok(answer);
        }
        Opened::Upgraded { headers, connection } => (headers, connection),
    };
    if !is_spdy(&headers) {
        let why = "unable to upgrade: missing upgrade headers in response";
        count(StatusCode::INTERNAL_SERVER_ERROR.as_u16());
        return Ok(socket::refuse(StatusCode::INTERNAL_SERVER_ERROR, why));
    }
    let chosen = headers.get(STREAM_PROTOCOL).and_then(|p| p.to_str().ok()).map(|p| format!("{PREFIX}{}", p.trim()));
    let accepted = match socket::accept(request.headers(), chosen.as_deref()) {
        Ok(accepted) => accepted,
        Err(refusal) => {
            count(StatusCode::INTERNAL_SERVER_ERROR.as_u16());
            return Ok(*refusal);
        }
    };
    count(accepted.status().as_u16());
    let bandwidth = transport.bandwidth();
    tokio::spawn(async move {
        if let Ok(connection) = connection.await {
            join(socket::open(connection).await, kubelet, bandwidth).await;
        }
    });
    Ok(accepted)
}

/// Copies both ways until one side has no more to say.
async fn join(client: Socket, kubelet: impl AsyncRead + AsyncWrite, bandwidth: Option<NonZeroU32>) {
    let (mut to_client, mut from_client) = client.split();
    let (mut from_kubelet, mut to_kubelet) = tokio::io::split(kubelet);
    let up = async {
        let mut pace = Pace::new(bandwidth);
        while let Some(Ok(message)) = from_client.next().await {
            let data = match message {
                Message::Binary(data) => data,
                Message::Ping(_) | Message::Pong(_) => continue,
                // Nothing else can be SPDY.
                _ => return,
            };
            pace.spend(data.len()).await;
            if to_kubelet.write_all(&data).await.is_err() || to_kubelet.flush().await.is_err() {
                return;
            }
        }
    };
    let down = async {
        let mut pace = Pace::new(bandwidth);
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(MAX_PIECE);
            match from_kubelet.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => pace.spend(count).await,
            }
            let data: Bytes = buffer.split().freeze();
            if to_client.send(Message::Binary(data)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
    websocket::close(&mut to_client).await;
    // Whoever is gone need not be told.
    let _ = to_kubelet.shutdown().await;
}
