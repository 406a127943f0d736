//! Many connections, and servers that go and come back while clients are at work.

#[path = "../../../kubelith/tests/support/mod.rs"]
mod support;

mod connections;
mod restarts;
mod rolling_restart;

const PROGRAM: &str = env!("CARGO_BIN_EXE_server-to-break");
