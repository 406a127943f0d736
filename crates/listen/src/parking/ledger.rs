//! The part of an HTTP/2 connection's state that is needed to resume it: settings, windows, streams.

use super::frames::{self, FIRST_WINDOW, Head};
use super::held::{Answer, OpenStream, ResumedAnswer, Streams};
use std::task::{Context, Poll};

/// Settings that are kept, by number; RFC 9113 and 8441 know eight.
const SETTINGS_KEPT: usize = 9;
/// Bytes of filler that a resumed connection may have to send until its windows are those before parking.
const MAX_FILLER: i64 = 256 * 1024;
/// HPACK of the placeholder request `GET https://x/`, for streams whose responses continue.
const ANY_REQUEST: &[u8] = &[0x82, 0x87, 0x84, 0x01, 0x01, b'x'];

type Settings = [Option<u32>; SETTINGS_KEPT];

/// The state of a parked connection.
pub struct Parked {
    settings: Settings,
    send_window: i64,
    receive_window: i64,
    last_stream: u32,
    open: Vec<Paused>,
}

/// A stream whose response is not at its end.
struct Paused {
    stream: u32,
    window: i64,
    answer: Answer,
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

fn initial_window(settings: &Settings) -> i64 {
    settings[usize::from(frames::INITIAL_WINDOW_SIZE)].map_or(FIRST_WINDOW, i64::from)
}

fn positive(n: i64) -> u32 {
    u32::try_from(n.max(0)).unwrap_or(u32::MAX)
}

impl Parked {
    /// Ready when one of the responses has data.
    pub fn poll_answer_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // All of them are polled, so that each registers the waker.
        let mut is_ready = false;
        for paused in &mut self.open {
            is_ready |= paused.answer.poll_answer_ready(cx).is_ready();
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
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
        let filler: i64 = streams.iter().map(|t| i64::from(t.filler)).sum();
        let more = self.send_window + filler - FIRST_WINDOW;
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
        let mut words = frames::settings([(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)]);
        if let Some(more) = u32::try_from(window - self.receive_window).ok().filter(|more| *more > 0) {
            words.extend(frames::window_update(0, more));
        }
        words
    }
}

/// The client's HPACK table, as far as we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    InUse,
    /// SETTINGS that empty it were sent.
    Asked,
    /// The client has acknowledged them.
    Empty,
}

/// What the tap does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Forward,
    /// It belongs to parking itself, or to a stream that ended before the connection was parked.
    Suppress,
}

#[derive(Debug)]
struct Open {
    id: u32,
    /// Its number since the connection was last resumed.
    nth: u64,
    client_ended: bool,
    server_ended: bool,
    /// The response's HEADERS were sent.
    answered: bool,
    /// The send window, relative to the initial one.
    window: i64,
    sent: u64,
}

impl Open {
    fn new(id: u32, nth: u64) -> Open {
        Open { id, nth, client_ended: false, server_ended: false, answered: false, window: 0, sent: 0 }
    }

    /// Whether only more of the response is to come.
    fn is_waiting(&self) -> bool {
        self.client_ended && self.answered && !self.server_ended
    }
}

#[derive(Debug)]
pub struct Ledger {
    settings: Settings,
    /// Of the connection.
    send_window: i64,
    receive_window: i64,
    last_stream: u32,
    /// The last stream before parking; 0 once a later one has begun. hyper does not know streams up to it.
    previous_last_stream: u32,
    /// In the order in which they were begun.
    open: Vec<Open>,
    /// Streams since the connection was last resumed.
    begun: u64,
    /// Bytes of DATA.
    sent: u64,
    /// The first ACK is for hyper's SETTINGS.
    hyper_waits_for_ack: bool,
    /// ACKs of parking's own SETTINGS that are still to come.
    own_acks: u32,
    table: Table,
    /// A stream has begun after the client was asked to empty its table.
    is_used_again: bool,
    leaving: bool,
}

impl Ledger {
    pub fn new() -> Ledger {
        Ledger {
            settings: Default::default(),
            send_window: FIRST_WINDOW,
            receive_window: FIRST_WINDOW,
            last_stream: 0,
            previous_last_stream: 0,
            open: Vec::new(),
            begun: 0,
            sent: 0,
            hyper_waits_for_ack: true,
            own_acks: 0,
            table: Table::InUse,
            is_used_again: false,
            leaving: false,
        }
    }

    /// Of a connection that is being resumed.
    pub fn resumed(parked: &Parked, streams: &[ResumedStream], window: i64) -> Ledger {
        let resumed = |(nth, paused): (usize, &Paused)| Open {
            client_ended: true,
            answered: true,
            window: paused.window,
            ..Open::new(paused.stream, nth as u64)
        };
        Ledger {
            open: parked.open.iter().enumerate().map(resumed).collect(),
            begun: streams.len() as u64,
            settings: parked.settings,
            send_window: parked.send_window,
            receive_window: window,
            last_stream: parked.last_stream,
            previous_last_stream: parked.last_stream,
            hyper_waits_for_ack: false,
            own_acks: 1,
            ..Ledger::new()
        }
    }

    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    /// The head of a client's frame.
    pub fn client_frame(&mut self, head: Head) -> Action {
        let Head { kind, stream, .. } = head;
        if head.is_ack() && !std::mem::take(&mut self.hyper_waits_for_ack) && self.own_acks > 0 {
            self.own_acks -= 1;
            if self.own_acks == 0 && self.table == Table::Asked {
                self.table = Table::Empty;
            }
            return Action::Suppress;
        }
        let is_of_previous =
            stream > 0 && stream <= self.previous_last_stream && !self.open.iter().any(|o| o.id == stream);
        match kind {
            frames::HEADERS if stream > self.last_stream => {
                self.last_stream = stream;
                self.previous_last_stream = 0;
                self.open.push(Open::new(stream, self.begun));
                self.begun += 1;
                self.is_used_again = true;
            }
            frames::RST_STREAM => self.open.retain(|o| o.id != stream),
            frames::DATA => self.receive_window -= head.length as i64,
            frames::GOAWAY => self.leaving = true,
            _ => {}
        }
        if matches!(kind, frames::HEADERS | frames::DATA) && head.has(frames::END_STREAM) {
            self.end(stream, |o| o.client_ended = true);
        }
        if is_of_previous { Action::Suppress } else { Action::Forward }
    }

    /// The whole payload of a client's SETTINGS or WINDOW_UPDATE.
    pub fn client_payload_ends(&mut self, head: Head, payload: &[u8]) {
        match head.kind {
            frames::SETTINGS if !head.is_ack() => {
                for (id, value) in frames::read_settings(payload) {
                    if let Some(slot) = self.settings.get_mut(usize::from(id)) {
                        *slot = Some(value);
                    }
                }
            }
            frames::WINDOW_UPDATE => {
                let more = frames::read_window(payload).map_or(0, i64::from);
                match head.stream {
                    0 => self.send_window += more,
                    stream => self.of_open(stream, |o| o.window += more),
                }
            }
            _ => {}
        }
    }

    /// The head of a frame that hyper sends.
    pub fn server_frame(&mut self, head: Head) {
        match head.kind {
            frames::DATA => {
                self.send_window -= head.length as i64;
                self.sent += head.length as u64;
                self.of_open(head.stream, |o| {
                    o.window -= head.length as i64;
                    o.sent += head.length as u64;
                });
            }
            frames::HEADERS => self.of_open(head.stream, |o| o.answered = true),
            frames::RST_STREAM => self.open.retain(|o| o.id != head.stream),
            frames::GOAWAY => self.leaving = true,
            _ => {}
        }
        if matches!(head.kind, frames::HEADERS | frames::DATA) && head.has(frames::END_STREAM) {
            self.end(head.stream, |o| o.server_ended = true);
        }
    }

    /// hyper opens the connection's receive window.
    pub fn server_window_update(&mut self, more: u32) {
        self.receive_window += i64::from(more);
    }

    fn of_open(&mut self, stream: u32, note: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.iter_mut().find(|o| o.id == stream) {
            note(open);
        }
    }

    fn end(&mut self, stream: u32, side: impl FnOnce(&mut Open)) {
        let Some(at) = self.open.iter().position(|o| o.id == stream) else { return };
        side(&mut self.open[at]);
        if self.open[at].client_ended && self.open[at].server_ended {
            self.open.remove(at);
        }
    }

    /// Whether all streams only wait for more of their responses, and replaying could restore the windows.
    fn is_settled(&self) -> bool {
        let filler: i64 = self.open.iter().map(|o| (-o.window).max(0)).sum();
        let initial = initial_window(&self.settings);
        // A client that makes its windows smaller can bring those of streams below zero, where no filler brings them.
        let is_below_zero = self.open.iter().any(|o| initial + o.window < 0);
        // The first one may have to make up for what others have sent; its window must have space for that.
        let most = initial + self.open.first().map_or(0, |o| o.window.max(0)) + FIRST_WINDOW;
        self.open.iter().all(Open::is_waiting)
            && !self.hyper_waits_for_ack
            && !self.leaving
            && self.send_window >= 0
            && !is_below_zero
            && filler <= MAX_FILLER
            && self.send_window + filler <= i64::from(i32::MAX)
            && (self.open.is_empty() || most <= i64::from(i32::MAX))
    }

    /// The bytes sent so far, if a send window (the connection's or a stream's) is used up.
    pub fn sent_before_stop(&self) -> Option<u64> {
        let initial = initial_window(&self.settings);
        let stopped = self.send_window <= 0 || self.open.iter().any(|o| initial + o.window <= 0);
        stopped.then_some(self.sent)
    }

    fn open_streams(&self) -> impl Iterator<Item = OpenStream> {
        self.open.iter().map(|o| OpenStream { nth: o.nth, sent: o.sent })
    }

    /// Whether the connection could be parked as soon as the client's HPACK table is empty.
    pub fn may_park(&self, streams: &Streams) -> bool {
        self.is_settled() && streams.are_held(self.begun, self.open_streams())
    }

    /// SETTINGS that ask the client to empty its HPACK table, unless they were sent.
    pub fn request_empty_table(&mut self) -> Option<Vec<u8>> {
        if self.table != Table::InUse {
            return None;
        }
        self.table = Table::Asked;
        self.is_used_again = false;
        self.own_acks += 1;
        Some(frames::settings([(frames::HEADER_TABLE_SIZE, 0)]))
    }

    /// SETTINGS that give the client its HPACK table back, if it was asked to empty it and is active again.
    pub fn restore_table(&mut self) -> Option<Vec<u8>> {
        if self.table == Table::InUse || !self.is_used_again {
            return None;
        }
        self.table = Table::InUse;
        self.own_acks += 1;
        Some(frames::settings([(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)]))
    }

    /// The parked state, if the connection can be parked now.
    pub fn park(&self, streams: &Streams) -> Option<Parked> {
        if self.table != Table::Empty || !self.is_settled() {
            return None;
        }
        let answers = streams.take(self.begun, self.open_streams())?;
        let paused = |(o, answer): (&Open, Answer)| Paused { stream: o.id, window: o.window, answer };
        Some(Parked {
            settings: self.settings,
            send_window: self.send_window,
            receive_window: self.receive_window,
            last_stream: self.last_stream,
            open: self.open.iter().zip(answers).map(paused).collect(),
        })
    }
}
