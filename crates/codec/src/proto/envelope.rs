//! The envelope of an object: a prefix that no JSON begins with, and a message (`runtime.Unknown`) with the kind
//! and the object's own bytes.

use super::wire::{BYTES, Reader, WireError, put_bytes, put_nested};
use crate::error::DecodeError;
use crate::json::TypeMeta;
use std::borrow::Cow;

/// What enveloped data begins with.
pub const PREFIX: &[u8; 4] = b"k8s\0";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub type_meta: TypeMeta,
    /// The object's message.
    pub raw: &'a [u8],
    pub content_encoding: Cow<'a, str>,
    pub content_type: Cow<'a, str>,
}

impl<'a> Envelope<'a> {
    pub fn read(data: &'a [u8]) -> Result<Envelope<'a>, DecodeError> {
        if data.is_empty() {
            return Err(DecodeError::malformed("empty data"));
        }
        let Some(message) = data.strip_prefix(PREFIX) else {
            return Err(DecodeError::malformed(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
            ));
        };
        if message.is_empty() {
            return Err(DecodeError::malformed("empty body"));
        }
        Ok(Envelope::read_message(message)?)
    }

    fn read_message(message: &'a [u8]) -> Result<Envelope<'a>, WireError> {
        let mut envelope = Envelope::default();
        let mut r = Reader::new(message);
        while let Some(tag) = r.tag(|| "Unknown".into())? {
            let field = match tag.number {
                1 => "TypeMeta",
                2 => "Raw",
                3 => "ContentEncoding",
                4 => "ContentType",
                _ => {
                    r.skip(tag.wire_type)?;
                    continue;
                }
            };
            if tag.wire_type != BYTES {
                return Err(WireError::WrongWireType { wire_type: tag.wire_type, field: field.into() });
            }
            let bytes = r.bytes()?;
            match tag.number {
                1 => read_type_meta(bytes, &mut envelope.type_meta)?,
                2 => envelope.raw = bytes,
                3 => envelope.content_encoding = String::from_utf8_lossy(bytes),
                _ => envelope.content_type = String::from_utf8_lossy(bytes),
            }
        }
        Ok(envelope)
    }
}

fn read_type_meta(message: &[u8], meta: &mut TypeMeta) -> Result<(), WireError> {
    let mut r = Reader::new(message);
    while let Some(tag) = r.tag(|| "TypeMeta".into())? {
        let (field, into) = match tag.number {
            1 => ("APIVersion", &mut meta.api_version),
            2 => ("Kind", &mut meta.kind),
            _ => {
                r.skip(tag.wire_type)?;
                continue;
            }
        };
        if tag.wire_type != BYTES {
            return Err(WireError::WrongWireType { wire_type: tag.wire_type, field: field.into() });
        }
        *into = String::from_utf8_lossy(r.bytes()?).as_ref().into();
    }
    Ok(())
}

/// Appends an envelope; `raw` writes the object's message into it.
pub fn write_envelope<E>(
    out: &mut Vec<u8>,
    meta: &TypeMeta,
    raw: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    out.extend_from_slice(PREFIX);
    put_type_meta(out, meta);
    put_nested(out, 2, raw)?;
    out.extend_from_slice(&ENVELOPE_END);
    Ok(())
}

pub(super) fn put_type_meta(out: &mut Vec<u8>, meta: &TypeMeta) {
    put_nested(out, 1, |out| {
        put_bytes(out, 1, meta.api_version.as_bytes());
        put_bytes(out, 2, meta.kind.as_bytes());
    });
}

/// Neither content encoding nor content type.
pub(super) const ENVELOPE_END: [u8; 4] = [0x1a, 0, 0x22, 0];
