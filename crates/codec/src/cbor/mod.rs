//! CBOR (RFC 8949) as kube-apiserver reads and writes it behind the gate CBORServingAndStorage: strings are byte strings,
//! keys are sorted by their encoded form, numbers are as short as they can be, and every document begins with the tag
//! that says it is CBOR.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{decode, split_first};
pub use encode::{Order, to_vec};

/// The head of tag 55799, "this is CBOR".
pub const MAGIC: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// Whether a stored value or a body is CBOR rather than JSON.
pub fn is_cbor(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The major types, in the upper three bits of a head.
mod major {
    pub const UNSIGNED: u8 = 0;
    pub const NEGATIVE: u8 = 1;
    pub const BYTES: u8 = 2;
    pub const TEXT: u8 = 3;
    pub const ARRAY: u8 = 4;
    pub const MAP: u8 = 5;
    pub const TAG: u8 = 6;
    pub const SIMPLE: u8 = 7;
}
