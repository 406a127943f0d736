//! The controllers in the process, seen by a client of the real program.

#[path = "../support/mod.rs"]
mod support;

mod api;
mod garbage;
mod lease;
mod model;
mod namespaces;
mod others;
