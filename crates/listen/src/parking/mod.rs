//! Putting silent HTTP/2 connections aside.
//!
//! hyper's state of an HTTP/2 connection takes some 20 KB, nearly all of it buffers that are empty between requests.
//! What really has to be known of a silent connection is little: the client's settings, two windows, the last stream. So
//! the frames that go by are watched ([`tap`]), that little is written down ([`ledger`]), and when nothing has
//! happened for a while the state is dropped. With the client's next bytes a new one is made, which is told what the
//! old one had been told.
//!
//! ```text
//! server                               client
//!   SETTINGS(header table 0) ────────►            quiet: its table of header compression is to be emptied,
//!             ◄──────────────────────── ACK       which is the one thing that cannot be told again
//!   (state dropped)
//!             ◄──────────────────────── HEADERS   begins with a change of the table's size
//!   (new state: preface, the client's settings, its window and an ACK are fed to it; what it says first, which the
//!    client knows, is kept back)
//!   SETTINGS(header table 4096), window ────────►
//! ```
//!
//! Answers that are not at their end, as those of watches, are taken out of hyper's hands ([`held`]) and asked for more
//! while the connection is aside. When one has something, or the client, the new state is told of a request for each of
//! them, its answer is what was held, and the head that hyper sends with it is kept back. Windows from which more was
//! taken than was given since are brought down by sending filler, which is kept back too.
//!
//! A client that does not empty its table is noticed by what its headers refer to ([`hpack`]) and sent a GOAWAY that
//! says that its request was not begun: it tries again on another connection.

mod frames;
mod held;
mod hpack;
mod ledger;
mod tap;

pub(super) use frames::answer_ping;
pub(super) use held::{Answer, Begun, Held, Streams};
pub(super) use ledger::Parked;
pub(super) use tap::{Tap, TapIo};
