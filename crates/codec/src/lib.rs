//! Bytes to values and back: JSON, YAML and protobuf as kube-apiserver reads and writes them, content
//! negotiation, watch framing and compression. Pure: no I/O, no clock, no global state.

pub mod base64;
pub mod cbor;
pub mod config;
pub mod error;
pub mod frames;
pub mod gzip;
pub mod json;
pub mod negotiate;
pub mod object;
pub mod proto;
pub mod typed;
pub mod yaml;

pub use error::{DecodeError, TypeError};
