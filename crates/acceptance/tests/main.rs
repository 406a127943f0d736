//! The whole program by area. One program of tests: what some wait for, others work through.

#[path = "../../kubelith/tests/support/mod.rs"]
mod support;

mod access;
mod controllers;
mod storage;
mod webhooks;

const PROGRAM: &str = env!("CARGO_BIN_EXE_server-to-test");
