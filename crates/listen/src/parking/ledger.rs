//! What has been said on an HTTP/2 connection that a new state would have to know.

use super::frames::{self, FIRST_WINDOW, Head};
use super::held::{Again, Answer, OpenStream, Streams};
use std::task::{Context, Poll};

/// Settings that are kept, by number; RFC 9113 and 8441 know eight.
const SETTINGS_KEPT: usize = 9;
/// Bytes that a new state may have to send in vain until its windows are those of the old one.
const MAX_FILLER: i64 = 256 * 1024;
/// GET https / of nobody: for requests whose answers go on.
const ANY_REQUEST: &[u8] = &[0x82, 0x87, 0x84, 0x01, 0x01, b'x'];

type Settings = [Option<u32>; SETTINGS_KEPT];

/// All that is kept of a connection that was put aside.
pub struct Parked {
    settings: Settings,
    send_window: i64,
    receive_window: i64,
    last_stream: u32,
    open: Vec<Paused>,
}

/// A request that was answered in part.
struct Paused {
    stream: u32,
    window: i64,
    answer: Answer,
}

/// A stream that a new state has to be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub stream: u32,
    /// What the client lets us send beyond the window that streams begin with.
    more: u32,
    /// What has to be sent in vain to bring windows down to what they were.
    pub filler: u32,
    /// It was over long ago: it stands for what was sent on others.
    pub is_over: bool,
}

fn initial_window(settings: &Settings) -> i64 {
    settings[usize::from(frames::INITIAL_WINDOW_SIZE)].map_or(FIRST_WINDOW, i64::from)
}

fn positive(n: i64) -> u32 {
    u32::try_from(n.max(0)).unwrap_or(u32::MAX)
}

impl Parked {
    /// Ready when an answer goes on.
    pub fn poll_stirs(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // All of them are asked, so that each wakes us.
        let mut stirs = false;
        for paused in &mut self.open {
            stirs |= paused.answer.poll_stirs(cx).is_ready();
        }
        if stirs { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Streams that a new state has to be told of, and by how much the connection's window is to be opened.
    fn told(&self) -> (Vec<Told>, u32) {
        let told = |o: &Paused| Told {
            stream: o.stream,
            more: positive(o.window),
            filler: positive(-o.window),
            is_over: false,
        };
        let mut streams: Vec<_> = self.open.iter().map(told).collect();
        let filler: i64 = streams.iter().map(|t| i64::from(t.filler)).sum();
        let more = self.send_window + filler - FIRST_WINDOW;
        if more < 0 {
            let filler = positive(-more);
            match streams.first_mut() {
                Some(told) => (told.more, told.filler) = (told.more + filler, told.filler + filler),
                None => {
                    let more = positive(i64::from(filler) - initial_window(&self.settings));
                    streams.push(Told { stream: self.last_stream, more, filler, is_over: true });
                }
            }
        }
        (streams, positive(more))
    }

    /// What a new state has to be told before it hears the client again: all that the client said on the whole. The
    /// streams that it will answer first are in their order.
    pub fn introduction(&self) -> (Vec<u8>, Vec<Told>) {
        let settings = self.settings.iter().enumerate().filter_map(|(id, value)| Some((id as u16, (*value)?)));
        let (streams, more) = self.told();
        let mut words = [frames::PREFACE, &frames::settings(settings)].concat();
        if more > 0 {
            words.extend(frames::window_update(0, more));
        }
        words.extend(frames::settings_ack());
        for told in &streams {
            words.extend(frames::frame(
                frames::HEADERS,
                frames::END_STREAM | frames::END_HEADERS,
                told.stream,
                ANY_REQUEST,
            ));
            if told.more > 0 {
                words.extend(frames::window_update(told.stream, told.more));
            }
        }
        (words, streams)
    }

    /// The answers that go on, in the order of the introduction.
    pub fn into_answers(self) -> Vec<Again> {
        let (streams, _) = self.told();
        let mut answers = self.open.into_iter().map(|o| o.answer);
        streams.iter().map(|told| Again { answer: answers.next(), filler: told.filler as usize }).collect()
    }

    /// What the client is told when its connection is taken up again by a state that lets it send `window`.
    pub fn greeting(&self, window: i64) -> Vec<u8> {
        let mut words = frames::settings([(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)]);
        if let Some(more) = u32::try_from(window - self.receive_window).ok().filter(|more| *more > 0) {
            words.extend(frames::window_update(0, more));
        }
        words
    }
}

/// The client's table of header compression, as we know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    InUse,
    /// The client was told to empty it.
    Asked,
    /// It has said that it will.
    Empty,
}

/// What becomes of a client's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Passes,
    /// It is meant for us, or for streams of an earlier life.
    Kept,
}

#[derive(Debug)]
struct Open {
    id: u32,
    /// Which one of this life it is.
    nth: u64,
    client_ended: bool,
    server_ended: bool,
    /// The answer's head was sent.
    answered: bool,
    /// How much more than at its begin the client lets us send.
    window: i64,
    sent: u64,
}

impl Open {
    fn new(id: u32, nth: u64) -> Open {
        Open { id, nth, client_ended: false, server_ended: false, answered: false, window: 0, sent: 0 }
    }

    /// Whether nothing is missing but more of the answer.
    fn is_waiting(&self) -> bool {
        self.client_ended && self.answered && !self.server_ended
    }
}

#[derive(Debug)]
pub struct Ledger {
    settings: Settings,
    /// How much the client lets us send on the connection, and we it.
    send_window: i64,
    receive_window: i64,
    last_stream: u32,
    /// Streams up to this one were of an earlier life; the state has not heard of them, nor of any later one yet.
    bygone: u32,
    /// In the order in which they were begun.
    open: Vec<Open>,
    /// Streams of this life.
    begun: u64,
    /// Bytes of answers.
    sent: u64,
    /// The first acknowledgment is for the settings of hyper's.
    hyper_waits_for_ack: bool,
    /// Acknowledgments of our own settings that are still to come.
    own_acks: u32,
    table: Table,
    /// A stream was begun after the client was asked to empty its table.
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
            bygone: 0,
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

    /// Of a connection that is taken up again and was just greeted.
    pub fn resumed(parked: &Parked, told: &[Told], window: i64) -> Ledger {
        let again = |(nth, paused): (usize, &Paused)| Open {
            client_ended: true,
            answered: true,
            window: paused.window,
            ..Open::new(paused.stream, nth as u64)
        };
        Ledger {
            open: parked.open.iter().enumerate().map(again).collect(),
            begun: told.len() as u64,
            settings: parked.settings,
            send_window: parked.send_window,
            receive_window: window,
            last_stream: parked.last_stream,
            bygone: parked.last_stream,
            hyper_waits_for_ack: false,
            own_acks: 1,
            ..Ledger::new()
        }
    }

    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    /// A client's frame begins.
    pub fn client_begins(&mut self, head: Head) -> Fate {
        let Head { kind, stream, .. } = head;
        if head.is_ack() && !std::mem::take(&mut self.hyper_waits_for_ack) && self.own_acks > 0 {
            self.own_acks -= 1;
            if self.own_acks == 0 && self.table == Table::Asked {
                self.table = Table::Empty;
            }
            return Fate::Kept;
        }
        let is_bygone = stream > 0 && stream <= self.bygone && !self.open.iter().any(|o| o.id == stream);
        match kind {
            frames::HEADERS if stream > self.last_stream => {
                self.last_stream = stream;
                self.bygone = 0;
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
        if is_bygone { Fate::Kept } else { Fate::Passes }
    }

    /// The payload of a client's SETTINGS or WINDOW_UPDATE is whole.
    pub fn client_said(&mut self, head: Head, payload: &[u8]) {
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

    /// A frame of ours begins.
    pub fn server_begins(&mut self, head: Head) {
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

    /// We let the client send more on the connection.
    pub fn server_allows(&mut self, more: u32) {
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

    /// Whether all streams only wait for more of their answers, and a new state could be told all that matters.
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

    /// If the client lets us send nothing more, on the connection or on a stream: how much was sent until now.
    pub fn sent_before_stop(&self) -> Option<u64> {
        let initial = initial_window(&self.settings);
        let stopped = self.send_window <= 0 || self.open.iter().any(|o| initial + o.window <= 0);
        stopped.then_some(self.sent)
    }

    fn open_streams(&self) -> impl Iterator<Item = OpenStream> {
        self.open.iter().map(|o| OpenStream { nth: o.nth, sent: o.sent })
    }

    /// Whether the connection could be put aside as soon as the client's table is empty.
    pub fn may_park(&self, streams: &Streams) -> bool {
        self.is_settled() && streams.are_held(self.begun, self.open_streams())
    }

    /// Settings to send so that the connection can be put aside later, if they were not sent yet.
    pub fn ask(&mut self) -> Option<Vec<u8>> {
        if self.table != Table::InUse {
            return None;
        }
        self.table = Table::Asked;
        self.is_used_again = false;
        self.own_acks += 1;
        Some(frames::settings([(frames::HEADER_TABLE_SIZE, 0)]))
    }

    /// Settings to send because the connection is used again, if it was about to be put aside.
    pub fn unask(&mut self) -> Option<Vec<u8>> {
        if self.table == Table::InUse || !self.is_used_again {
            return None;
        }
        self.table = Table::InUse;
        self.own_acks += 1;
        Some(frames::settings([(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)]))
    }

    /// What to keep, if the connection can be put aside now.
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
