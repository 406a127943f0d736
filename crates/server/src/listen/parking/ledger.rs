//! What has been said on an HTTP/2 connection that a new state would have to know.

use super::frames::{self, FIRST_WINDOW, Head};

/// Settings that are kept, by number; RFC 9113 and 8441 know eight.
const SETTINGS_KEPT: usize = 9;

/// All that is kept of a connection that was put aside.
#[derive(Debug, Clone)]
pub struct Parked {
    settings: [Option<u32>; SETTINGS_KEPT],
    send_window: i64,
    receive_window: i64,
    last_stream: u32,
}

impl Parked {
    /// What a new state has to be told before it hears the client again: all that the client said on the whole.
    pub fn introduction(&self) -> Vec<u8> {
        let settings = self.settings.iter().enumerate().filter_map(|(id, value)| Some((id as u16, (*value)?)));
        let mut words = [frames::PREFACE, &frames::settings(settings)].concat();
        if let Some(more) = u32::try_from(self.send_window - FIRST_WINDOW).ok().filter(|more| *more > 0) {
            words.extend(frames::window_update(more));
        }
        words.extend(frames::settings_ack());
        words
    }

    /// What the client is told when its connection is taken up again by a state that lets it send `window`.
    pub fn greeting(&self, window: i64) -> Vec<u8> {
        let mut words = frames::settings([(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)]);
        if let Some(more) = u32::try_from(window - self.receive_window).ok().filter(|more| *more > 0) {
            words.extend(frames::window_update(more));
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
    client_ended: bool,
    server_ended: bool,
}

#[derive(Debug)]
pub struct Ledger {
    settings: [Option<u32>; SETTINGS_KEPT],
    /// How much the client lets us send on the connection, and we it.
    send_window: i64,
    receive_window: i64,
    last_stream: u32,
    /// Streams up to this one were of an earlier life; the state has not heard of them, nor of any later one yet.
    bygone: u32,
    open: Vec<Open>,
    /// The first acknowledgment is for the settings of hyper's.
    hyper_waits_for_ack: bool,
    /// Acknowledgments of our own settings that are still to come.
    own_acks: u32,
    table: Table,
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
            hyper_waits_for_ack: true,
            own_acks: 0,
            table: Table::InUse,
            leaving: false,
        }
    }

    /// Of a connection that is taken up again and was just greeted.
    pub fn resumed(parked: &Parked, window: i64) -> Ledger {
        Ledger {
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
        match kind {
            frames::HEADERS if stream > self.last_stream => {
                self.last_stream = stream;
                self.bygone = 0;
                self.open.push(Open { id: stream, client_ended: false, server_ended: false });
            }
            frames::RST_STREAM => self.open.retain(|o| o.id != stream),
            frames::DATA => self.receive_window -= head.length as i64,
            frames::GOAWAY => self.leaving = true,
            _ => {}
        }
        if matches!(kind, frames::HEADERS | frames::DATA) && head.has(frames::END_STREAM) {
            self.end(stream, |o| o.client_ended = true);
        }
        if stream > 0 && stream <= self.bygone { Fate::Kept } else { Fate::Passes }
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
            frames::WINDOW_UPDATE if head.stream == 0 => {
                self.send_window += frames::read_window(payload).map_or(0, i64::from);
            }
            _ => {}
        }
    }

    /// A frame of ours begins.
    pub fn server_begins(&mut self, head: Head) {
        match head.kind {
            frames::DATA => self.send_window -= head.length as i64,
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

    fn end(&mut self, stream: u32, side: impl FnOnce(&mut Open)) {
        let Some(at) = self.open.iter().position(|o| o.id == stream) else { return };
        side(&mut self.open[at]);
        if self.open[at].client_ended && self.open[at].server_ended {
            self.open.swap_remove(at);
        }
    }

    /// Whether no stream is open and a new state could be told all that matters. Less of a window than every
    /// connection begins with cannot be told.
    pub fn is_settled(&self) -> bool {
        self.open.is_empty() && !self.hyper_waits_for_ack && !self.leaving && self.send_window >= FIRST_WINDOW
    }

    /// Settings to send so that the connection can be put aside later, if they were not sent yet.
    pub fn ask(&mut self) -> Option<Vec<u8>> {
        if self.table != Table::InUse {
            return None;
        }
        self.table = Table::Asked;
        self.own_acks += 1;
        Some(frames::settings([(frames::HEADER_TABLE_SIZE, 0)]))
    }

    /// Settings to send because the connection is used again, if it was about to be put aside.
    pub fn unask(&mut self) -> Option<Vec<u8>> {
        if self.table == Table::InUse || self.open.is_empty() {
            return None;
        }
        self.table = Table::InUse;
        self.own_acks += 1;
        Some(frames::settings([(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)]))
    }

    /// What to keep, if the connection can be put aside now.
    pub fn park(&self) -> Option<Parked> {
        (self.table == Table::Empty && self.is_settled()).then(|| Parked {
            settings: self.settings,
            send_window: self.send_window,
            receive_window: self.receive_window,
            last_stream: self.last_stream,
        })
    }
}
