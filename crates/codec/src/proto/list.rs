//! A list answered in protobuf from the enveloped bytes of its items, without decoding them or joining them.

use super::envelope::{ENVELOPE_END, PREFIX, put_type_meta};
use super::wire::{BYTES, put_tag, put_varint, varint_len};
use crate::json::TypeMeta;

const METADATA: u32 = 1;
const ITEMS: u32 = 2;

/// The bytes around the items of a list: `begin`, then for each item `item_prefix` of its message's length and the
/// message ([`super::Envelope::raw`]), then `END`.
pub struct ListFrame {
    items_len: usize,
    count: usize,
}

impl ListFrame {
    pub const END: [u8; 4] = ENVELOPE_END;

    /// `lengths` are those of the items' messages, without their envelopes.
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> ListFrame {
        let mut frame = ListFrame { items_len: 0, count: 0 };
        for len in lengths {
            frame.items_len += 1 + varint_len(len as u64) + len;
            frame.count += 1;
        }
        frame
    }

    /// The beginning of the envelope, up to the first item. `metadata` is the message of the list's ListMeta.
    pub fn begin(&self, meta: &TypeMeta, metadata: &[u8]) -> Vec<u8> {
        let metadata_len = 1 + varint_len(metadata.len() as u64) + metadata.len();
        let mut out = Vec::with_capacity(64 + metadata_len);
        out.extend_from_slice(PREFIX);
        put_type_meta(&mut out, meta);
        put_tag(&mut out, 2, BYTES);
        put_varint(&mut out, (metadata_len + self.items_len) as u64);
        put_tag(&mut out, METADATA, BYTES);
        put_varint(&mut out, metadata.len() as u64);
        out.extend_from_slice(metadata);
        out
    }

    /// What stands before each item; appended to `out` so that it can share a buffer.
    pub fn item_prefix(out: &mut Vec<u8>, len: usize) {
        put_tag(out, ITEMS, BYTES);
        put_varint(out, len as u64);
    }

    pub fn count(&self) -> usize {
        self.count
    }
}
