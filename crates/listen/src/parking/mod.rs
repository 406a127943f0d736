//! Parking: idle HTTP/2 connections without hyper's state.
//!
//! hyper's state of an HTTP/2 connection takes some 20 KB, nearly all of it buffers that are empty between requests. A
//! connection that is idle needs little of it: the client's settings, two flow-control windows, the last stream number.
//! The [`tap`] sits between the socket and hyper and reads the frames of both directions, the [`ledger`] keeps that
//! little, and when nothing was sent for a while hyper's state is dropped: the connection is *parked*. The client's next
//! bytes *resume* it: a new hyper connection is made, and the frames that set up the old one are replayed to it.
//!
//! # Protocol
//!
//! ```text
//! server                               client
//!   SETTINGS(HEADER_TABLE_SIZE=0) ────►           the client's HPACK table is the one part of its state that cannot
//!             ◄──────────────────────── ACK       be replayed, so the client is asked to empty it
//!   (hyper's state is dropped)
//!             ◄──────────────────────── HEADERS   begins with a dynamic table size update
//!   (new state; replayed to it: preface, the client's SETTINGS, WINDOW_UPDATE, an ACK; its own first frames, which
//!    the client has seen on this connection, are suppressed)
//!   SETTINGS(HEADER_TABLE_SIZE=4096), WINDOW_UPDATE ────►
//! ```
//!
//! * **Open responses** (watches) are bodies that can be taken back from hyper ([`held`]), and are polled while the
//!   connection is parked ([`parked`]). Data that the windows allow is sent as it is, a frame with one write: an event costs a
//!   third of what it takes through hyper, where one task makes it a frame and another one writes it. So a connection on
//!   which nothing is asked is parked however many events it has. For the end of an answer, for an error, for data that must
//!   wait, and when the client asks for something, the connection is resumed: for each open stream a HEADERS frame of a
//!   placeholder request is replayed, the response is the body that was held, and the response HEADERS that hyper sends for
//!   it are suppressed.
//! * **Send windows** that are smaller than a new state assumes are brought down by filler: DATA that hyper counts and
//!   the tap suppresses. At most 2 MiB of it, or the connection is not parked.
//! * **PING** is answered and **WINDOW_UPDATE** noted without resuming.
//! * **A client that keeps its HPACK table** is noticed by a header block that refers to it ([`hpack`]) and gets a GOAWAY
//!   whose last stream is the one before: the client may safely retry on another connection.
//! * **Frames for streams that ended before parking** (a late WINDOW_UPDATE or RST_STREAM) are suppressed, since the new
//!   state would take them for errors.
//! * **GOAWAY** is sent to parked clients when the server stops: they are resumed for it.
//!
//! `--park-idle-connections=false` turns all of this off; the tap then only counts.

#[cfg(test)]
mod any_frames;
mod bells;
mod frames;
mod held;
mod hpack;
mod ledger;
mod parked;
mod tap;

pub(super) use held::{Answer, Begun, Held, Streams};
pub(super) use parked::Parked;
pub(super) use tap::{Tap, TapIo};
