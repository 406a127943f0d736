//! One connection, on which one request is sent after the other, each when the answer to the one before was read.

use super::answer::{Broken, Chunks, Framing, Head};
use super::dial::{DialError, Dialer, Stream};
use super::question::Question;
use super::transport::Failed;
use bytes::{Bytes, BytesMut};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Room for what is read at a time: most answers fit into the first.
const LEAST_ROOM: usize = 2 << 10;
const MOST_ROOM: usize = 64 << 10;

/// A connection. It is passed on often: boxed.
pub(super) struct Line {
    stream: Stream,
    /// What came, as far as it is not read yet.
    heard: BytesMut,
}

/// How far a request was sent.
#[derive(Clone, Copy)]
pub(super) enum Sent {
    /// So many bytes.
    Partly(usize),
    /// All that is left is what the connection keeps back.
    Written,
    Whole,
}

impl Line {
    pub async fn open(dialer: &Dialer, question: &Question) -> Result<Box<Line>, Failed> {
        let stream = dialer.dial_uri(question.uri()).await.map_err(|DialError(text)| Failed::fresh(text))?;
        Ok(Box::new(Line { stream, heard: BytesMut::new() }))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, question: &Question, sent: &mut Sent) -> Poll<io::Result<()>> {
        let (head, body) = (question.head(), question.body());
        loop {
            match *sent {
                Sent::Partly(at) if at == head.len() + body.len() => *sent = Sent::Written,
                Sent::Partly(at) => {
                    let rest = [&head[at.min(head.len())..], &body[at.saturating_sub(head.len())..]].map(IoSlice::new);
                    match ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &rest))? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        more => *sent = Sent::Partly(at + more),
                    }
                }
                Sent::Written => {
                    ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
                    *sent = Sent::Whole;
                }
                Sent::Whole => return Poll::Ready(Ok(())),
            }
        }
    }

    /// How many more bytes came; none at the end of the connection.
    fn poll_hear(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        self.heard.reserve(room);
        pin!(self.stream.read_buf(&mut self.heard)).poll(cx)
    }

    async fn hear(&mut self, room: usize) -> Result<(), Broken> {
        match poll_fn(|cx| self.poll_hear(cx, room)).await {
            Ok(1..) => Ok(()),
            Ok(0) | Err(_) => Err(Broken::Cut),
        }
    }

    fn poll_head(&mut self, cx: &mut Context<'_>, looked: &mut usize) -> Poll<Result<(Head, Framing), Failed>> {
        loop {
            match ready!(self.poll_hear(cx, LEAST_ROOM)) {
                Ok(1..) => {}
                Ok(0) => return Poll::Ready(Err(Failed::fresh("EOF".to_owned()))),
                Err(why) => return Poll::Ready(Err(Failed::of(&why))),
            }
            let head = Head::take(&mut self.heard, looked).and_then(|head| match head {
                Some(head) => head.framing().map(|framing| Some((head, framing))),
                None => Ok(None),
            });
            if let Some(head) = head.map_err(Failed::malformed).transpose() {
                return Poll::Ready(head);
            }
        }
    }

    /// Sends a request, and reads the head of its answer. A server may answer before it has heard everything: it is not told the rest then,
    /// and the connection is of no use afterwards.
    pub async fn ask(&mut self, question: &Question) -> Result<(Head, Framing, Sent), Failed> {
        let (mut sent, mut looked) = (Sent::Partly(0), 0);
        poll_fn(|cx| {
            let sending = self.poll_send(cx, question, &mut sent);
            match (self.poll_head(cx, &mut looked), sending) {
                (Poll::Ready(head), _) => Poll::Ready(head.map(|(head, framing)| (head, framing, sent))),
                (Poll::Pending, Poll::Ready(Err(why))) => Poll::Ready(Err(Failed::of(&why))),
                (Poll::Pending, _) => Poll::Pending,
            }
        })
        .await
    }

    /// The body of an answer, within a limit.
    pub async fn body(&mut self, framing: &Framing, limit: usize) -> Result<Bytes, BodyError> {
        let within = |length: usize| if length > limit { Err(BodyError::TooLong) } else { Ok(()) };
        match framing {
            Framing::Length(length) => {
                let length = usize::try_from(*length).unwrap_or(usize::MAX);
                while self.heard.len() < length {
                    within(self.heard.len())?;
                    self.hear((length - self.heard.len()).clamp(LEAST_ROOM, MOST_ROOM)).await?;
                }
                within(length)?;
                Ok(self.heard.split_to(length).freeze())
            }
            Framing::Chunked => {
                let (mut chunks, mut body) = (Chunks::default(), BytesMut::new());
                while !chunks.take(&mut self.heard, &mut body)? {
                    within(body.len())?;
                    self.hear(MOST_ROOM).await?;
                }
                within(body.len())?;
                Ok(body.freeze())
            }
            Framing::UntilEnd => loop {
                within(self.heard.len())?;
                let more = poll_fn(|cx| self.poll_hear(cx, MOST_ROOM)).await;
                if more.map_err(|_| Broken::Cut)? == 0 {
                    return Ok(self.heard.split().freeze());
                }
            },
        }
    }

    /// Nothing came that was not read.
    pub fn is_silent(&self) -> bool {
        self.heard.is_empty()
    }

    /// It can take a request, as far as one can tell without asking the other side: nothing came, not even the end.
    pub fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        let mut byte = [0];
        Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending()
    }
}

/// Why a body is not there.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLong,
    Broken(Broken),
}

impl From<Broken> for BodyError {
    fn from(why: Broken) -> BodyError {
        BodyError::Broken(why)
    }
}
