//! Watch events on the wire: a line of JSON, or protobuf behind its length. An event is its object's bytes between a
//! beginning and an end, so that the object can be shared by all who watch it.

use crate::proto::wire::{BYTES, put_bytes, put_tag, put_varint, varint_len};

/// The bytes around the object of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFrame {
    pub begin: Vec<u8>,
    pub end: &'static [u8],
}

/// `{"type":"ADDED","object":` … `}` and a newline. The object's JSON goes between without a newline of its own.
pub fn json_event(kind: &str) -> EventFrame {
    let mut begin = Vec::with_capacity(kind.len() + 24);
    begin.extend_from_slice(b"{\"type\":");
    crate::json::write_string(&mut begin, kind);
    begin.extend_from_slice(b",\"object\":");
    EventFrame { begin, end: b"}\n" }
}

/// Four bytes of length (big endian), then a `WatchEvent` without an envelope whose object is the enveloped one of
/// `object_len` bytes.
pub fn proto_event(kind: &str, object_len: usize) -> EventFrame {
    let raw_len = 1 + varint_len(object_len as u64) + object_len;
    let mut begin = Vec::with_capacity(kind.len() + 24);
    begin.extend_from_slice(&[0; 4]);
    put_bytes(&mut begin, 1, kind.as_bytes());
    put_tag(&mut begin, 2, BYTES);
    put_varint(&mut begin, raw_len as u64);
    put_tag(&mut begin, 1, BYTES);
    put_varint(&mut begin, object_len as u64);
    let len = (begin.len() - 4 + object_len) as u32;
    begin[..4].copy_from_slice(&len.to_be_bytes());
    EventFrame { begin, end: b"" }
}

impl EventFrame {
    /// The whole event in one buffer.
    pub fn with(&self, object: &[u8]) -> Vec<u8> {
        let object = if self.end.is_empty() { object } else { object.strip_suffix(b"\n").unwrap_or(object) };
        [self.begin.as_slice(), object, self.end].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_events_are_lines() {
        assert_eq!(json_event("ADDED").with(b"{\"a\":1}\n"), b"{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n");
    }

    #[test]
    fn proto_events_have_their_length_in_front() {
        let object = vec![b'x'; 200];
        let frame = proto_event("MODIFIED", object.len()).with(&object);
        let mut want = vec![0, 0, 0, 216, 0x0a, 8];
        want.extend_from_slice(b"MODIFIED");
        want.extend_from_slice(&[0x12, 0xcb, 0x01, 0x0a, 0xc8, 0x01]);
        want.extend_from_slice(&object);
        assert_eq!(frame, want);
        assert_eq!(frame.len() - 4, 216);
    }
}
