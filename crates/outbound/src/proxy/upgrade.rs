//! Joining two connections: the client's and one to the server, once the server has agreed to switch protocols.

use super::{ProxyError, Target, Transport, body};
use crate::pace::Pace;
use http::header::{CONNECTION, HOST, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper_util::rt::TokioIo;
use kubelith_http::upgrade::OnUpgrade;
use kubelith_http::{RequestBody, Response};
use std::num::NonZeroU32;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Of what is copied at a time, if there is a limit.
const MAX_CHUNK: usize = 32 << 10;

/// A request's head, its hop headers removed.
pub struct Head {
    pub method: Method,
    pub headers: HeaderMap,
    /// The protocol that the client asks for.
    pub protocol: Option<HeaderValue>,
}

/// What a server says to a request to switch protocols.
pub enum Opened<C> {
    /// It agrees. The headers are its answer's.
    Upgraded {
        headers: HeaderMap,
        connection: C,
    },
    Refused(Response),
}

/// Sends the request on a connection of its own and asks for another protocol there. An answer that is neither agreement nor refusal is an error,
/// because the client could not make sense of it.
pub async fn open_upgraded(
    transport: &Transport,
    target: Target,
    head: Head,
    body: RequestBody,
) -> Result<Opened<impl AsyncRead + AsyncWrite + Send + Unpin + 'static>, ProxyError> {
    let default_port = if transport.dialer.tls.is_some() { 443 } else { 80 };
    let port = target.authority.port_u16().unwrap_or(default_port);
    let stream = transport.dialer.dial(target.authority.host(), port).await.map_err(|e| ProxyError::Dial(e.0))?;
    let dial = |e: hyper::Error| ProxyError::Dial(e.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(dial)?;
    let driver = tokio::spawn(connection.with_upgrades());

    let mut request = http::Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = target.path_and_query.into();
    *request.headers_mut() = head.headers;
    let headers = request.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = head.protocol {
        headers.insert(UPGRADE, protocol);
    }
    if !headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(target.authority.as_str())
    {
        headers.insert(HOST, host);
    }
    let response = sender.send_request(request).await.map_err(|e| {
        driver.abort();
        ProxyError::BadAnswer(e.to_string())
    })?;
    let status = response.status();
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let headers = response.headers().clone();
        let connection = hyper::upgrade::on(response).await.map_err(|e| ProxyError::BadAnswer(e.to_string()))?;
        return Ok(Opened::Upgraded { headers, connection: TokioIo::new(connection) });
    }
    let (mut parts, incoming) = response.into_parts();
    super::headers::remove_hop_headers(&mut parts.headers);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(Opened::Refused(http::Response::from_parts(parts, body::passed(incoming))))
}

/// Joins the client's connection with one on which the server agreed to switch protocols. A refusal is passed on.
pub async fn forward(
    transport: &Transport,
    target: Target,
    head: Head,
    body: RequestBody,
    client: Option<OnUpgrade>,
) -> Result<Response, ProxyError> {
    let client = client.ok_or(ProxyError::NoConnection)?;
    let (headers, server) = match open_upgraded(transport, target, head, body).await? {
        Opened::Refused(answer) if answer.status().as_u16() < 400 => {
            return Err(ProxyError::NotUpgraded(answer.status().as_u16()));
        }
        Opened::Refused(answer) => return Ok(answer),
        Opened::Upgraded { headers, connection } => (headers, connection),
    };
    let mut answer = Response::new(kubelith_http::Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *answer.headers_mut() = headers;
    let bandwidth = transport.bandwidth;
    tokio::spawn(async move {
        let Ok(client) = client.await else { return };
        join(client, server, bandwidth).await;
    });
    Ok(answer)
}

/// Copies both ways until one side has no more to say: then both are closed, as clients of exec and attach expect.
async fn join(client: impl AsyncRead + AsyncWrite, server: impl AsyncRead + AsyncWrite, bandwidth: Option<NonZeroU32>) {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    // What is in flight when a connection breaks is lost, which both sides see.
    tokio::select! {
        _ = copy(&mut from_client, &mut to_server, bandwidth) => {}
        _ = copy(&mut from_server, &mut to_client, bandwidth) => {}
    }
    let _ = to_server.shutdown().await;
    let _ = to_client.shutdown().await;
}

/// At most so many bytes per second.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    bandwidth: Option<NonZeroU32>,
) -> std::io::Result<()> {
    let Some(limit) = bandwidth else { return tokio::io::copy(from, to).await.map(drop) };
    // A tenth of a second's worth at a time: slow, but steadily.
    let mut buffer = vec![0; (limit.get() as usize / 10).clamp(1, MAX_CHUNK)];
    let mut pace = Pace::new(bandwidth);
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        pace.spend(count).await;
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn bytes_take_the_time_that_they_must() {
        for (limit, seconds) in [(NonZeroU32::new(100), 9.0), (None, 0.0)] {
            let (start, mut out) = (Instant::now(), Vec::new());
            copy(&mut &[7; 1000][..], &mut out, limit).await.unwrap();
            let took = start.elapsed().as_secs_f64();
            assert_eq!(out.len(), 1000);
            assert!((seconds..=seconds + 1.5).contains(&took), "{took} s");
        }
    }
}
