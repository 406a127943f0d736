//! The packets of a tunnel, as protobuf has them.

use bytes::Bytes;

pub const DIAL_REQUEST: i32 = 0;
pub const DIAL_RESPONSE: i32 = 1;
pub const CLOSE_REQUEST: i32 = 2;
pub const CLOSE_RESPONSE: i32 = 3;
pub const DATA: i32 = 4;
pub const DIAL_CLOSED: i32 = 5;

/// By the numbers above, as metrics call them.
const NAMES: [&str; 7] = ["DIAL_REQ", "DIAL_RSP", "CLOSE_REQ", "CLOSE_RSP", "DATA", "DIAL_CLS", "DRAIN"];

#[derive(Clone, PartialEq, prost::Message)]
pub struct Packet {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "2")]
    pub dial_request: Option<DialRequest>,
    #[prost(message, optional, tag = "3")]
    pub dial_response: Option<DialResponse>,
    #[prost(message, optional, tag = "4")]
    pub data: Option<Data>,
    #[prost(message, optional, tag = "5")]
    pub close_request: Option<CloseRequest>,
    #[prost(message, optional, tag = "6")]
    pub close_response: Option<CloseResponse>,
    #[prost(message, optional, tag = "7")]
    pub close_dial: Option<CloseDial>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DialRequest {
    #[prost(string, tag = "1")]
    pub protocol: String,
    #[prost(string, tag = "2")]
    pub address: String,
    #[prost(int64, tag = "3")]
    pub random: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DialResponse {
    #[prost(string, tag = "1")]
    pub error: String,
    #[prost(int64, tag = "2")]
    pub connection: i64,
    #[prost(int64, tag = "3")]
    pub random: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CloseRequest {
    #[prost(int64, tag = "1")]
    pub connection: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CloseResponse {
    #[prost(string, tag = "1")]
    pub error: String,
    #[prost(int64, tag = "2")]
    pub connection: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CloseDial {
    #[prost(int64, tag = "1")]
    pub random: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Data {
    #[prost(int64, tag = "1")]
    pub connection: i64,
    #[prost(bytes = "bytes", tag = "3")]
    pub data: Bytes,
}

impl Packet {
    pub fn name(&self) -> &'static str {
        usize::try_from(self.kind).ok().and_then(|kind| NAMES.get(kind)).copied().unwrap_or("Unknown")
    }

    pub fn dial(target: &str, random: i64) -> Packet {
        let dial = DialRequest { protocol: "tcp".to_owned(), address: target.to_owned(), random };
        Packet { kind: DIAL_REQUEST, dial_request: Some(dial), ..Packet::default() }
    }

    /// Whoever asked for a connection no longer waits for it.
    pub fn close_dial(random: i64) -> Packet {
        Packet { kind: DIAL_CLOSED, close_dial: Some(CloseDial { random }), ..Packet::default() }
    }

    pub fn close(connection: i64) -> Packet {
        Packet { kind: CLOSE_REQUEST, close_request: Some(CloseRequest { connection }), ..Packet::default() }
    }

    pub fn data(connection: i64, data: Bytes) -> Packet {
        Packet { kind: DATA, data: Some(Data { connection, data }), ..Packet::default() }
    }
}
