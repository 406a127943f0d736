//! The part of an HTTP/2 connection's state that is needed to resume it: settings, windows, streams.

use super::frames::{self, FIRST_WINDOW, Head};
use super::held::{Answer, OpenStream, Streams};
use super::parked::{MAX_FILLER, Parked, Paused, ResumedStream, Settings, initial_window};

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
            settings: *parked.settings(),
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
        let open = self.open.iter().zip(answers).map(paused).collect();
        Some(Parked::new(self.settings, self.send_window, self.receive_window, self.last_stream, open))
    }
}
