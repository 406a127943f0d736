//! The controllers in the process, seen by a client of the real program.

mod aggregated;
mod api;
mod garbage;
mod lease;
mod model;
mod namespaces;
mod others;
mod policies;
