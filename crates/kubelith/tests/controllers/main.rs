//! The controllers in the process, seen by a client of the real program.

#[path = "../support/mod.rs"]
mod support;

mod aggregated;
mod api;
mod garbage;
mod lease;
mod model;
mod namespaces;
mod others;
mod policies;
