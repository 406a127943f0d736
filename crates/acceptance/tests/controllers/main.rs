//! The controllers in the process, seen by a client of the real program.

#[path = "../../../kubelith/tests/support/mod.rs"]
mod support;

mod aggregated;
mod api;
mod garbage;
mod lease;
mod model;
mod namespaces;
mod others;
mod policies;

const PROGRAM: &str = env!("CARGO_BIN_EXE_server-to-test");
