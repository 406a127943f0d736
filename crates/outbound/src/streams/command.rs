//! exec and attach: the channels of a client's WebSocket as streams of SPDY.
//!
//! The WebSocket is opened before the kubelet is asked, so whatever goes wrong from then on is told on the channel for errors. Who may do it
//! was decided before; what is passed on here is not looked into.

use super::socket::{self, Socket};
use super::spdy::{Broken, Frame, Reader, Writer};
use super::verdict::{self, Words};
use crate::pace::Pace;
use crate::proxy::{Head, Opened, Target, Transport, open_upgraded};
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::SplitSink;
use futures::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use kubelith_codec::json;
use kubelith_http::upgrade::{self, Upgraded};
use kubelith_http::{Request, RequestBody, Response, websocket};
use kubelith_meta::Value;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::Message;

/// The protocol by which a client can say that it has no more input.
pub const PROTOCOL: &str = "v5.channel.k8s.io";
/// What kubelets may speak, the best first.
const KUBELET_PROTOCOLS: [&str; 5] =
    [PROTOCOL, "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
pub(super) const SPDY: HeaderValue = HeaderValue::from_static("SPDY/3.1");

/// Channels of the WebSocket.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// A message on it names a channel on which nothing more will come.
const CLOSE: u8 = 255;

const PING_EVERY: Duration = Duration::from_secs(5);
/// For the kubelet to be reached and to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// For the kubelet to agree to all streams.
const AGREE_WITHIN: Duration = Duration::from_secs(30);
/// For the client to take the last word.
const LAST_WORD_WITHIN: Duration = Duration::from_secs(10);
/// Of a kubelet's refusal.
const MAX_REFUSAL: usize = 64 << 10;
/// Of how a command ended.
const MAX_ERROR: usize = 1 << 20;

/// What the client wants to be connected with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    pub tty: bool,
}

/// Answers the client's handshake; the rest follows once the connection is free. `count` hears how it ended, unless the
/// client went before.
pub fn serve(
    mut request: Request,
    transport: Arc<Transport>,
    target: Target,
    streams: Streams,
    count: impl FnOnce(u16) + Send + 'static,
) -> Response {
    let accepted = match socket::accept(request.headers(), Some(PROTOCOL)) {
        Ok(accepted) => accepted,
        Err(refusal) => {
            count(StatusCode::BAD_REQUEST.as_u16());
            return *refusal;
        }
    };
    let Some(connection) = upgrade::on(&mut request) else {
        return socket::refuse(StatusCode::BAD_REQUEST, "not websocket protocol");
    };
    tokio::spawn(async move {
        if let Ok(connection) = connection.await {
            run(socket::open(connection).await, &transport, target, streams, count).await;
        }
    });
    accepted
}

async fn run(socket: Socket, transport: &Transport, target: Target, streams: Streams, count: impl FnOnce(u16)) {
    let (mut to_client, mut from_client) = socket.split();
    // An empty message on the first channel that can carry one says that the connection stands.
    let first = if streams.stdout {
        STDOUT
    } else if streams.stderr {
        STDERR
    } else {
        ERROR
    };
    if to_client.send(message(first, &[])).await.is_err() {
        return;
    }
    let verdict = match kubelet(transport, target).await {
        Err(why) => verdict::internal(&why),
        Ok(Agreed { connection, words }) => {
            let (reader, writer) = tokio::io::split(connection);
            let session =
                Session { streams, words, writer: Mutex::new(Writer::new(writer)), bandwidth: transport.bandwidth() };
            // Nothing is sent on a stream that is not open yet.
            match session.open().await {
                Err(e) => verdict::internal(&e.to_string()),
                Ok(()) => tokio::select! {
                verdict = session.pass_output(Reader::new(reader), &mut to_client) => verdict,
                () = session.pass_input(&mut from_client) => return,
                () = session.keep_alive() => return,
                },
            }
        }
    };
    count(verdict::code(&verdict));
    let told = async {
        if to_client.send(message(ERROR, &json::to_vec(&verdict))).await.is_ok() {
            websocket::close(&mut to_client).await;
        }
    };
    // A client that is gone hears nothing.
    let _ = tokio::time::timeout(LAST_WORD_WITHIN, told).await;
}

fn message(channel: u8, data: &[u8]) -> Message {
    let mut message = BytesMut::with_capacity(1 + data.len());
    message.put_u8(channel);
    message.put_slice(data);
    Message::Binary(message.freeze())
}

struct Agreed<C> {
    connection: C,
    words: Words,
}

/// Asks the kubelet to speak SPDY.
async fn kubelet(
    transport: &Transport,
    target: Target,
) -> Result<Agreed<impl AsyncRead + AsyncWrite + Send + Unpin + 'static>, String> {
    let mut headers = HeaderMap::new();
    for protocol in KUBELET_PROTOCOLS {
        headers.append(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
    }
    let url = format!("{}://{}{}", transport.scheme(), target.authority, target.path_and_query);
    let head = Head { method: Method::POST, headers, protocol: Some(SPDY) };
    let failed = |why: &str| format!("error sending request: Post {url:?}: {why}");
    // Nobody listens to the client meanwhile, so a kubelet that says nothing must not be waited for without end.
    let opened = open_upgraded(transport, target, head, RequestBody::Full(None));
    let opened = tokio::time::timeout(ANSWER_WITHIN, opened).await.map_err(|_| failed("context deadline exceeded"))?;
    match opened.map_err(|e| failed(&e.why()))? {
        Opened::Upgraded { headers, connection } if is_spdy(&headers) => {
            let words = match headers.get(STREAM_PROTOCOL).and_then(|p| p.to_str().ok()) {
                Some("v5.channel.k8s.io" | "v4.channel.k8s.io") => Words::Status,
                _ => Words::Text,
            };
            Ok(Agreed { connection, words })
        }
        Opened::Upgraded { .. } => Err("unable to upgrade connection: empty server response".to_owned()),
        Opened::Refused(answer) => {
            let is_redirect = answer.status().is_redirection();
            if is_redirect && answer.headers().contains_key(http::header::LOCATION) {
                return Err(failed("redirect not allowed"));
            }
            Err(format!("unable to upgrade connection: {}", refusal(answer).await))
        }
    }
}

pub(super) fn is_spdy(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(http::header::UPGRADE).and_then(|u| u.to_str().ok()).unwrap_or("");
    upgrade.to_ascii_lowercase().contains("spdy/3.1")
}

/// A kubelet's own words.
async fn refusal(answer: Response) -> String {
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while text.len() < MAX_REFUSAL
        && let Some(Ok(frame)) = body.frame().await
    {
        text.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d));
    }
    if let Ok(status) = json::parse(&text) {
        let words = ["message", "error"].map(|key| status.str_at(&[key]).trim().to_owned());
        if let Some(words) = words.into_iter().find(|words| !words.is_empty()) {
            return words;
        }
    }
    match String::from_utf8_lossy(&text).trim() {
        "" => "empty server response".to_owned(),
        text => text.to_owned(),
    }
}

impl Streams {
    /// Names of the streams in the order in which they are opened, with their ids.
    fn opened(self) -> impl Iterator<Item = (&'static str, u32)> {
        let names = [
            ("error", true),
            ("stdin", self.stdin),
            ("stdout", self.stdout),
            ("stderr", self.stderr && !self.tty),
            ("resize", self.tty),
        ];
        // What a client opens is odd.
        names.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| name).zip((1..).step_by(2))
    }

    fn id(self, name: &str) -> Option<u32> {
        self.opened().find(|(opened, _)| *opened == name).map(|(_, id)| id)
    }
}

struct Session<W> {
    streams: Streams,
    words: Words,
    /// Frames of both directions: input, and answers to pings.
    writer: Mutex<Writer<W>>,
    bandwidth: Option<NonZeroU32>,
}

impl<W: AsyncWrite + Unpin> Session<W> {
    async fn open(&self) -> Result<(), Broken> {
        let mut writer = self.writer.lock().await;
        for (name, id) in self.streams.opened() {
            writer.open(id, &[("streamtype", name)]).await?;
        }
        Ok(())
    }

    /// Passes on what comes, until all output has ended; then says how it ended.
    async fn pass_output<R: AsyncRead + Unpin>(
        &self,
        mut reader: Reader<R>,
        to_client: &mut SplitSink<Socket, Message>,
    ) -> Value {
        let mut unanswered: Vec<u32> = self.streams.opened().map(|(_, id)| id).collect();
        let agree_by = tokio::time::Instant::now() + AGREE_WITHIN;
        let mut open: Vec<u32> =
            ["error", "stdout", "stderr"].iter().filter_map(|name| self.streams.id(name)).collect();
        let mut output = [self.output("stdout", STDOUT), self.output("stderr", STDERR)];
        let mut told = Vec::new();
        while !open.is_empty() {
            let next = match unanswered.is_empty() {
                true => reader.next().await,
                false => match tokio::time::timeout_at(agree_by, reader.next()).await {
                    Ok(next) => next,
                    Err(_) => return verdict::internal("Timeout occurred"),
                },
            };
            // A connection that ends or breaks ends all of its streams.
            let Ok(Some(frame)) = next else { break };
            let ended = match frame {
                Frame::Agreed { id, last } => {
                    unanswered.retain(|one| *one != id);
                    last.then_some(id)
                }
                Frame::Data { id, data, last } => {
                    if Some(id) == self.streams.id("error") && told.len() + data.len() <= MAX_ERROR {
                        told.extend_from_slice(&data);
                    }
                    if let Some(output) = output.iter_mut().find(|output| output.id == Some(id))
                        && output.send(&data, to_client).await.is_err()
                    {
                        break;
                    }
                    last.then_some(id)
                }
                Frame::Reset { id } => Some(id),
                other => {
                    if self.answer(other).await.is_err() {
                        break;
                    }
                    None
                }
            };
            if let Some(id) = ended {
                open.retain(|one| *one != id);
                unanswered.retain(|one| *one != id);
                // Nobody reads the input any more.
                if Some(id) == self.streams.id("stdin") {
                    let _ = self.end_of_input().await;
                }
            }
        }
        verdict::of(&told, self.words)
    }

    fn output(&self, name: &str, channel: u8) -> Output {
        Output { id: self.streams.id(name), channel, pace: Pace::new(self.bandwidth) }
    }

    /// Frames that are no concern of a stream of ours.
    async fn answer(&self, frame: Frame) -> Result<(), Broken> {
        let mut writer = self.writer.lock().await;
        match frame {
            // Ours are odd, and come back.
            Frame::Ping { id } if id % 2 == 0 => writer.ping(id).await,
            Frame::Opened { id, .. } => writer.refuse(id).await,
            _ => Ok(()),
        }
    }

    async fn end_of_input(&self) -> Result<(), Broken> {
        match self.streams.id("stdin") {
            Some(id) => self.writer.lock().await.data(id, &[], true).await,
            None => Ok(()),
        }
    }

    /// Passes on what the client sends, until it is gone.
    async fn pass_input(&self, from_client: &mut (impl StreamExt<Item = Received> + Unpin)) {
        let mut pace = Pace::new(self.bandwidth);
        let mut input = self.streams.id("stdin");
        while let Some(Ok(message)) = from_client.next().await {
            let data = match message {
                Message::Binary(data) => data,
                Message::Text(text) => Bytes::from(text),
                Message::Close(_) => return,
                _ => continue,
            };
            let Some((channel, data)) = data.split_first() else { continue };
            let sent = match (*channel, data) {
                (STDIN, data) => match input {
                    Some(id) => {
                        pace.spend(data.len()).await;
                        self.writer.lock().await.data(id, data, false).await
                    }
                    None => Ok(()),
                },
                (RESIZE, size) => self.resize(size).await,
                (CLOSE, [STDIN]) if input.take().is_some() => self.end_of_input().await,
                _ => Ok(()),
            };
            if sent.is_err() {
                // What the kubelet has said until now is still to be read.
                return std::future::pending().await;
            }
        }
    }

    async fn resize(&self, size: &[u8]) -> Result<(), Broken> {
        let (Some(id), Ok(size)) = (self.streams.id("resize"), json::parse(size)) else { return Ok(()) };
        let side = |name: &str| size.get(name).and_then(Value::as_i64).and_then(|n| u16::try_from(n).ok()).unwrap_or(0);
        let told = format!("{{\"Width\":{},\"Height\":{}}}\n", side("Width"), side("Height"));
        self.writer.lock().await.data(id, told.as_bytes(), false).await
    }

    /// Keeps what is between here and the kubelet from forgetting a silent connection.
    async fn keep_alive(&self) {
        for id in (1..).step_by(2) {
            tokio::time::sleep(PING_EVERY).await;
            if self.writer.lock().await.ping(id).await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

type Received = Result<Message, tokio_tungstenite::tungstenite::Error>;

struct Output {
    id: Option<u32>,
    channel: u8,
    pace: Pace,
}

impl Output {
    async fn send(
        &mut self,
        data: &[u8],
        to_client: &mut SplitSink<tokio_tungstenite::WebSocketStream<Upgraded>, Message>,
    ) -> Result<(), tokio_tungstenite::tungstenite::Error> {
        if data.is_empty() {
            return Ok(());
        }
        self.pace.spend(data.len()).await;
        to_client.send(message(self.channel, data)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_opened_in_the_order_of_the_protocol() {
        let all = Streams { stdin: true, stdout: true, stderr: true, tty: false };
        let opened = |streams: Streams| streams.opened().collect::<Vec<_>>();
        assert_eq!(opened(all), [("error", 1), ("stdin", 3), ("stdout", 5), ("stderr", 7)]);
        assert_eq!(opened(Streams { tty: true, ..all }), [("error", 1), ("stdin", 3), ("stdout", 5), ("resize", 7)]);
        let none = Streams { stdin: false, stdout: false, stderr: false, tty: false };
        assert_eq!(opened(none), [("error", 1)]);
    }
}
