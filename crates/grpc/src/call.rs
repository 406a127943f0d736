//! One call of a method such as `/etcdserverpb.KV/Range`: messages both ways, and the status at the end.

use super::channel::{Channel, Counted, as_never_sent};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, header};
use prost::Message;
use tonic::{Code, Status};

/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// What is reserved for a message that has begun: no more than this before it comes, whatever length it claims.
const MOST_RESERVED: usize = 4 << 20;

pub struct Call {
    requests: SendStream<Bytes>,
    answer: Answer,
    /// Of the message that comes.
    buffer: BytesMut,
    _counted: Counted,
}

enum Answer {
    Awaited(ResponseFuture),
    Begun(RecvStream),
}

/// Whether a call is expected to end soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Short,
    Long,
}

/// A call with one message each way.
pub async fn unary<Q, A>(channel: &Channel, method: &'static str, request: &Q) -> Result<A, Status>
where
    Q: Message,
    A: Message + Default,
{
    let answer = unary_of_bytes(channel, method, framed(request)).await?;
    A::decode(answer).map_err(|error| Status::internal(error.to_string()))
}

/// Compiled once, not for each method.
async fn unary_of_bytes(channel: &Channel, method: &'static str, request: Bytes) -> Result<Bytes, Status> {
    let mut call = Call::begin(channel, method, HeaderMap::new(), Length::Short).await?;
    call.send_bytes(request, true)?;
    let answer = call.next_bytes().await?;
    let answer = answer.ok_or_else(|| Status::internal("the answer has no message"))?;
    // The status comes behind it.
    match call.next_bytes().await? {
        None => Ok(answer),
        Some(_) => Err(Status::internal("the answer has several messages")),
    }
}

pub(super) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(PREFIX + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode(&mut frame).expect("memory grows");
    frame.freeze()
}

impl Call {
    /// Begins a call with streams both ways, for as long as both want it.
    pub async fn streaming(channel: &Channel, method: &'static str, metadata: HeaderMap) -> Result<Call, Status> {
        Call::begin(channel, method, metadata, Length::Long).await
    }

    async fn begin(
        channel: &Channel,
        method: &'static str,
        mut metadata: HeaderMap,
        length: Length,
    ) -> Result<Call, Status> {
        let mut open = channel.ready().await?;
        metadata.insert(header::TE, header::HeaderValue::from_static("trailers"));
        metadata.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/grpc"));
        metadata.insert(header::USER_AGENT, header::HeaderValue::from_static("kubelith"));
        let mut request = Request::new(());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = channel.uri(method);
        *request.headers_mut() = metadata;
        let counted = open.calls.begin(length == Length::Short);
        let begun = open.requests.send_request(request, false);
        let (answer, requests) = begun.map_err(|error| as_never_sent(status_of(&error)))?;
        Ok(Call { requests, answer: Answer::Awaited(answer), buffer: BytesMut::new(), _counted: counted })
    }

    /// Sends a message behind which others may come.
    pub fn send(&mut self, message: &impl Message) -> Result<(), Status> {
        self.send_bytes(framed(message), false)
    }

    fn send_bytes(&mut self, frame: Bytes, is_last: bool) -> Result<(), Status> {
        self.requests.send_data(frame, is_last).map_err(|error| status_of(&error))
    }

    /// The next message, or none if the call has ended well. Dropping this loses nothing.
    pub async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, Status> {
        let Some(message) = self.next_bytes().await? else { return Ok(None) };
        A::decode(message).map(Some).map_err(|error| Status::internal(error.to_string()))
    }

    async fn next_bytes(&mut self) -> Result<Option<Bytes>, Status> {
        let body = self.answer.begun().await?;
        loop {
            if let Some(message) = take_message(&mut self.buffer)? {
                return Ok(Some(message));
            }
            match body.data().await {
                Some(Ok(data)) => {
                    // The window is opened for what is read, or the stream stands still.
                    let _ = body.flow_control().release_capacity(data.len());
                    if let Some(message) = whole_message(&self.buffer, &data) {
                        return Ok(Some(message));
                    }
                    self.buffer.extend_from_slice(&data);
                }
                Some(Err(error)) => return Err(status_of(&error)),
                None => break,
            }
        }
        let trailers = body.trailers().await.map_err(|error| status_of(&error))?;
        match trailers.as_ref().and_then(status_in) {
            Some(status) if status.code() != Code::Ok => Err(status),
            Some(_) if self.buffer.is_empty() => Ok(None),
            Some(_) => Err(Status::internal("a message was cut off")),
            None => Err(Status::internal("server closed the stream without sending trailers")),
        }
    }
}

impl Answer {
    /// The body, once the head has come.
    async fn begun(&mut self) -> Result<&mut RecvStream, Status> {
        if let Answer::Awaited(answer) = self {
            let (head, body) = answer.await.map_err(|error| status_of(&error))?.into_parts();
            if let Some(status) = status_in(&head.headers).filter(|status| status.code() != Code::Ok) {
                return Err(status);
            }
            if head.status != http::StatusCode::OK {
                let text = format!("unexpected HTTP status code received from server: {}", head.status);
                return Err(Status::new(code_of_http(head.status), text));
            }
            *self = Answer::Begun(body);
        }
        match self {
            Answer::Begun(body) => Ok(body),
            Answer::Awaited(_) => Err(Status::internal("no answer")),
        }
    }
}

/// A message that is the whole of a frame, as most are. It is copied: what is kept of it must not keep the connection's buffer.
fn whole_message(buffer: &BytesMut, data: &Bytes) -> Option<Bytes> {
    let length = length_of(data)?;
    let is_whole = buffer.is_empty() && data[0] == 0 && data.len() == PREFIX + length;
    is_whole.then(|| Bytes::copy_from_slice(&data[PREFIX..]))
}

fn length_of(buffer: &[u8]) -> Option<usize> {
    let [_, length @ ..] = buffer.first_chunk::<PREFIX>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

fn take_message(buffer: &mut BytesMut) -> Result<Option<Bytes>, Status> {
    let Some(length) = length_of(buffer) else { return Ok(None) };
    if buffer[0] != 0 {
        return Err(Status::unimplemented("the answer is compressed, which was not asked for"));
    }
    if buffer.len() - PREFIX < length {
        buffer.reserve((PREFIX + length - buffer.len()).min(MOST_RESERVED));
        return Ok(None);
    }
    buffer.advance(PREFIX);
    let message = buffer.split_to(length).freeze();
    if buffer.is_empty() {
        *buffer = BytesMut::new();
    }
    Ok(Some(message))
}

/// What `grpc-status` and `grpc-message` say.
fn status_in(headers: &HeaderMap) -> Option<Status> {
    Status::from_header_map(headers)
}

/// As gRPC maps them for servers that do not speak it.
fn code_of_http(status: http::StatusCode) -> Code {
    match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

/// A call that the connection ended.
fn status_of(error: &h2::Error) -> Status {
    let code = match error.reason() {
        _ if error.is_io() || error.is_go_away() => Code::Unavailable,
        Some(Reason::REFUSED_STREAM) => Code::Unavailable,
        Some(Reason::CANCEL) => Code::Cancelled,
        Some(Reason::ENHANCE_YOUR_CALM) => Code::ResourceExhausted,
        Some(Reason::INADEQUATE_SECURITY) => Code::PermissionDenied,
        Some(_) => Code::Internal,
        None => Code::Unavailable,
    };
    Status::new(code, format!("transport: {error}"))
}
