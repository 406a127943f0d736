//! The state of a parked connection: what it takes to resume it, and what it does meanwhile. Events of its watches are sent,
//! windows are noted, pings are answered; anything else resumes it.

use super::bells::Bells;
use super::frames::{self, FIRST_WINDOW, HEAD, Head};
use super::held::{Answer, Next, ResumedAnswer};
use crate::stream::ClientStream;
use bytes::{Buf, Bytes};
use http_body::Frame;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Settings that are kept, by number; RFC 9113 and 8441 know eight.
const SETTINGS_KEPT: usize = 9;
/// Bytes of filler that a resumed connection may have to send until its windows are those before parking. Clients open them
/// when half of them is used, which is a megabyte or two for those that have large ones. To make that much takes a
/// fraction of a millisecond, and is paid after as many bytes of events.
pub(super) const MAX_FILLER: i64 = 2 << 20;
/// Pieces that are sent before others have a turn.
const PIECES: usize = 32;
/// HPACK of the placeholder request `GET https://x/`, for streams whose responses continue.
const ANY_REQUEST: &[u8] = &[0x82, 0x87, 0x84, 0x01, 0x01, b'x'];

pub(super) type Settings = [Option<u32>; SETTINGS_KEPT];

/// The state of a parked connection.
pub struct Parked {
    settings: Box<Settings>,
    pub(super) send_window: i64,
    pub(super) receive_window: i64,
    pub(super) last_stream: u32,
    pub(super) open: Vec<Paused>,
    /// Which of several answers have something to send.
    bells: Option<Bells>,
    /// The rest of a frame that the session took in part.
    unsent: Option<Box<Unsent>>,
}

/// A stream whose response is not at its end.
pub struct Paused {
    pub stream: u32,
    /// Relative to the initial one.
    pub window: i64,
    pub answer: Answer,
}

/// Bytes that must go before anything else.
struct Unsent {
    head: [u8; HEAD],
    /// Of the head, what the session has taken.
    taken: usize,
    data: Bytes,
}

impl Unsent {
    fn slices(&self) -> [IoSlice<'_>; 2] {
        [IoSlice::new(&self.head[self.taken..]), IoSlice::new(&self.data)]
    }

    fn advance(&mut self, taken: usize) {
        let of_head = taken.min(HEAD - self.taken);
        self.taken += of_head;
        self.data.advance(taken - of_head);
    }

    fn is_over(&self) -> bool {
        self.taken == HEAD && self.data.is_empty()
    }
}

/// A stream that is replayed to a new state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumedStream {
    pub stream: u32,
    /// WINDOW_UPDATE to replay: what the client lets us send beyond the initial window.
    increment: u32,
    /// Bytes to send and suppress, to bring windows down to what they were.
    pub filler: u32,
    /// The stream has ended: it is replayed only to carry filler for the connection's window.
    pub is_over: bool,
}

pub(super) fn initial_window(settings: &Settings) -> i64 {
    settings[usize::from(frames::INITIAL_WINDOW_SIZE)].map_or(FIRST_WINDOW, i64::from)
}

fn positive(n: i64) -> u32 {
    u32::try_from(n.max(0)).unwrap_or(u32::MAX)
}

impl Parked {
    pub(super) fn new(
        settings: Settings,
        send_window: i64,
        receive_window: i64,
        last_stream: u32,
        open: Vec<Paused>,
    ) -> Parked {
        let bells = (open.len() > 1).then(|| Bells::new(open.len()));
        Parked { settings: Box::new(settings), send_window, receive_window, last_stream, open, bells, unsent: None }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Streams to replay, and the increment of the connection's window.
    fn streams(&self) -> (Vec<ResumedStream>, u32) {
        let resumed = |o: &Paused| ResumedStream {
            stream: o.stream,
            increment: positive(o.window),
            filler: positive(-o.window),
            is_over: false,
        };
        let mut streams: Vec<_> = self.open.iter().map(resumed).collect();
        let more = self.send_window + self.filler() - FIRST_WINDOW;
        if more < 0 {
            let filler = positive(-more);
            match streams.first_mut() {
                Some(first) => (first.increment, first.filler) = (first.increment + filler, first.filler + filler),
                None => {
                    let increment = positive(i64::from(filler) - initial_window(&self.settings));
                    streams.push(ResumedStream { stream: self.last_stream, increment, filler, is_over: true });
                }
            }
        }
        (streams, positive(more))
    }

    /// Frames that set up a new state as the client set up the old one, and the streams among them in their order.
    pub fn replay(&self) -> (Vec<u8>, Vec<ResumedStream>) {
        let settings = self.settings.iter().enumerate().filter_map(|(id, value)| Some((id as u16, (*value)?)));
        let (streams, increment) = self.streams();
        let mut words = [frames::PREFACE, &frames::settings(settings)].concat();
        if increment > 0 {
            words.extend(frames::window_update(0, increment));
        }
        words.extend(frames::settings_ack());
        for resumed in &streams {
            words.extend(frames::frame(
                frames::HEADERS,
                frames::END_STREAM | frames::END_HEADERS,
                resumed.stream,
                ANY_REQUEST,
            ));
            if resumed.increment > 0 {
                words.extend(frames::window_update(resumed.stream, resumed.increment));
            }
        }
        (words, streams)
    }

    /// The responses that continue, in the order of the replay.
    pub fn into_answers(self) -> Vec<ResumedAnswer> {
        let (streams, _) = self.streams();
        let mut answers = self.open.into_iter().map(|o| o.answer);
        streams.iter().map(|s| ResumedAnswer { answer: answers.next(), filler: s.filler as usize }).collect()
    }

    /// Frames for the client when its connection is resumed with a receive window of `window`.
    pub fn resume_frames(&self, window: i64) -> Vec<u8> {
        let mut words = Vec::new();
        for rest in self.unsent.iter().flat_map(|unsent| unsent.slices()) {
            words.extend_from_slice(&rest);
        }
        words.extend(frames::settings([(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)]));
        if let Some(more) = u32::try_from(window - self.receive_window).ok().filter(|more| *more > 0) {
            words.extend(frames::window_update(0, more));
        }
        words
    }
}

/// What a parked connection does by itself.
impl Parked {
    /// Ready when it has to be resumed, or with `false` when the client has left.
    pub fn poll_aside(&mut self, stream: &mut ClientStream, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            // What is cut off ends first; meanwhile the client waits, too.
            ready!(self.poll_unsent(stream, cx))?;
            while let Poll::Ready(spoke) = stream.poll_first_bytes(cx) {
                if !spoke? {
                    return Poll::Ready(Ok(false));
                }
                if !self.heeds(stream, cx) {
                    return Poll::Ready(Ok(true));
                }
            }
            // While the socket takes nothing, nothing more is made.
            ready!(stream.poll_flushed(cx))?;
            if self.poll_answers(stream, cx).is_ready() {
                return Poll::Ready(Ok(true));
            }
            ready!(stream.poll_flushed(cx))?;
            if self.unsent.is_none() {
                return Poll::Pending;
            }
        }
    }

    /// Takes what the client says, as long as that is about windows or asks whether we are there. False if something is left.
    fn heeds(&mut self, stream: &mut ClientStream, cx: &mut Context<'_>) -> bool {
        while let Some((head, rest)) = stream.unread_bytes().split_first_chunk::<HEAD>() {
            let head = Head::read(*head);
            let Some(payload) = rest.get(..head.length) else { return false };
            match head {
                Head { kind: frames::PING, flags: 0, stream: 0, length: 8 } if self.unsent.is_none() => {
                    let payload = Bytes::copy_from_slice(payload);
                    self.say(frames::head(8, frames::PING, frames::ACK, 0), payload, stream, cx);
                }
                Head { kind: frames::WINDOW_UPDATE, stream: of, .. } => {
                    let more = frames::read_window(payload).map_or(0, i64::from);
                    if !self.widen(of, more) {
                        return false;
                    }
                }
                _ => return false,
            }
            stream.unread_bytes().advance(HEAD + head.length);
        }
        stream.forget_read();
        !stream.has_unread()
    }

    /// Notes that the client lets us send more. False if it may not say that, or not of this stream, or if a resumed connection
    /// could not be brought to it.
    fn widen(&mut self, of: u32, more: i64) -> bool {
        let (initial, filler) = (initial_window(&self.settings), self.filler());
        let (window, beside) = match self.open.iter_mut().find(|paused| paused.stream == of) {
            Some(paused) => (&mut paused.window, initial + FIRST_WINDOW),
            None if of == 0 => (&mut self.send_window, filler),
            None => return false,
        };
        let is_possible = more > 0 && *window + beside + more <= i64::from(i32::MAX);
        *window += if is_possible { more } else { 0 };
        is_possible
    }

    /// Bytes that streams would have to send to bring their windows down.
    fn filler(&self) -> i64 {
        self.open.iter().map(|paused| (-paused.window).max(0)).sum()
    }

    /// Ready when an answer has something that takes a resumed connection: its end, an error, or more than windows allow.
    fn poll_answers(&mut self, stream: &mut ClientStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut pieces = 0;
        while let Some(at) = self.bells.as_mut().map_or((pieces == 0).then_some(0), |bells| bells.next(cx)) {
            while at < self.open.len() {
                let answer = &mut self.open[at].answer;
                let polled = match &self.bells {
                    None => answer.poll_frame(cx),
                    Some(bells) => answer.poll_frame(&mut Context::from_waker(bells.waker(at))),
                };
                let Poll::Ready(next) = polled else { break };
                let Some(data) = self.sendable(at, next) else { return Poll::Ready(()) };
                let is_taken = self.send(at, data, stream, cx);
                pieces += 1;
                if !is_taken || pieces >= PIECES {
                    // There may be more of this one.
                    self.bells.iter().for_each(|bells| bells.waker(at).wake_by_ref());
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            pieces = pieces.max(1);
        }
        Poll::Pending
    }

    /// The data of a frame that can be sent now; anything else is given back.
    fn sendable(&mut self, at: usize, next: Next) -> Option<Bytes> {
        let (initial, filler) = (initial_window(&self.settings), self.filler());
        let paused = &mut self.open[at];
        let length = match &next {
            Some(Ok(frame)) => frame.data_ref().map(|data| data.len() as i64),
            _ => None,
        };
        let fits = |length: &i64| {
            *length <= self.send_window && *length <= initial + paused.window && filler + *length <= MAX_FILLER
        };
        if length.filter(fits).is_none() {
            paused.answer.give_back(next);
            return None;
        }
        next?.ok()?.into_data().ok()
    }

    /// Sends data that windows allow. False if the session did not take all of it.
    fn send(&mut self, at: usize, mut data: Bytes, stream: &mut ClientStream, cx: &mut Context<'_>) -> bool {
        let most = self.settings[usize::from(frames::MAX_FRAME_SIZE)].unwrap_or(frames::DEFAULT_MAX_FRAME) as usize;
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(most));
            let length = piece.len() as i64;
            self.send_window -= length;
            self.open[at].window -= length;
            let head = frames::head(piece.len(), frames::DATA, 0, self.open[at].stream);
            if !self.say(head, piece, stream, cx) {
                if !data.is_empty() {
                    self.open[at].answer.give_back(Some(Ok(Frame::data(data))));
                }
                return false;
            }
        }
        true
    }

    /// Sends a frame. False if the session did not take all of it; a failure shows when it is to take the rest.
    fn say(&mut self, head: [u8; HEAD], data: Bytes, to: &mut ClientStream, cx: &mut Context<'_>) -> bool {
        let mut unsent = Unsent { head, taken: 0, data };
        if let Poll::Ready(Ok(taken)) = Pin::new(&mut *to).poll_write_vectored(cx, &unsent.slices()) {
            unsent.advance(taken);
        }
        let is_over = unsent.is_over();
        if !is_over {
            self.unsent = Some(Box::new(unsent));
        }
        is_over
    }

    fn poll_unsent(&mut self, stream: &mut ClientStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(unsent) = &mut self.unsent {
            let taken = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &unsent.slices()))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            unsent.advance(taken);
            if unsent.is_over() {
                self.unsent = None;
            }
        }
        Poll::Ready(Ok(()))
    }
}
