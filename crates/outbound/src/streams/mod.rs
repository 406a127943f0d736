//! Streams between clients and kubelets whose protocols differ: clients speak WebSocket, most kubelets SPDY/3.1.
//!
//! - [`command`]: exec and attach. A client's WebSocket (`v5.channel.k8s.io`: a byte in front of each message says which
//!   stream it belongs to) becomes SPDY streams, and back.
//! - [`tunnel`]: port-forward. The client speaks SPDY itself, in the messages of a WebSocket; what is in them is passed on.
//!
//! What comes from one side is sent to the other before more is read, so nothing but the piece under way is kept.

pub mod command;
mod socket;
mod spdy;
pub mod tunnel;
mod verdict;

pub use command::Streams;
pub use socket::asks_for;

#[cfg(test)]
mod tests;
