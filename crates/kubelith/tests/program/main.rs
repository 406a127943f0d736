//! The program as a process: its start and its end, its flags and commands, and what it shows of itself.
//! One test program for all of it, since linking one takes longer than most of these tests.

#[path = "../support/mod.rs"]
mod support;

mod bootstrap;
mod cbor;
mod console;
mod flags;
mod flow_control;
mod lifecycle;
mod metrics;
mod order;
mod privileged;
mod tools;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubelith");
