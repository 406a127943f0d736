//! Test tooling: replays recorded exchanges with kube-apiserver against a server and shows where its answers differ, and
//! drives real clients (kubectl, Helm, the Python client, kube-rs) against it.
//! It knows nothing of the crates under test; it speaks HTTP to a process, as every other client does.

pub mod clients;
pub mod compare;
pub mod corpus;
pub mod harness;
pub mod http;
pub mod known;
pub mod normalise;
pub mod path;
pub mod pauses;
pub mod replay;
pub mod report;
pub mod transcript;
pub mod variables;
pub mod webhook_server;
