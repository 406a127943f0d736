//! Protobuf as kube-apiserver writes it, driven by the protobuf numbers of a schema.
//!
//! Messages have the presence rules of the reference's generated code: scalars and structs that are no pointers
//! are always written, fields come in the order of their numbers, map entries in the order of their keys. An object
//! travels in an envelope (`k8s\0` and its kind); see [`Envelope`].

mod decode;
mod encode;
mod envelope;
mod list;
mod names;
mod source;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
mod text_tests;
pub(crate) mod wire;

pub use decode::decode;
pub use encode::{EncodeError, encode};
pub use envelope::{Envelope, PREFIX, write_envelope};
pub use list::ListFrame;
pub use wire::WireError;

use self::encode::encode_source;
use self::text::{Order, Text};
use crate::error::DecodeError;
use crate::json::TypeMeta;
use kubelith_meta::Value;
use kubelith_schema::TypedSchema;

/// Messages inside one another. Only the schemas of custom resources nest without end; Go follows them as far as
/// its stack grows.
pub const MAX_DEPTH: usize = 200;

/// An object with its envelope. The kind comes from the object itself.
pub fn to_vec(value: &Value, schema: &TypedSchema) -> Result<Vec<u8>, EncodeError> {
    let meta = TypeMeta { api_version: value.str_at(&["apiVersion"]).into(), kind: value.str_at(&["kind"]).into() };
    // Few objects are larger. What is kept of them is a copy of the right size.
    let mut out = Vec::with_capacity(8 << 10);
    write_envelope(&mut out, &meta, |out| encode(out, value, schema))?;
    Ok(out)
}

/// As [`to_vec`], of the JSON of an object, which need not be read into a value. `None` if it is written in another way than this
/// program does, or cannot be encoded: then its value is what to encode, or says why.
pub fn from_json(json: &[u8], schema: &TypedSchema) -> Option<Vec<u8>> {
    let text = Text::read(json, Order::Any)?;
    let meta = TypeMeta { api_version: text.root_string("apiVersion").into(), kind: text.root_string("kind").into() };
    let mut out = Vec::with_capacity(8 << 10);
    write_envelope(&mut out, &meta, |out| encode_source(out, text.root(), schema)).ok()?;
    Some(out)
}

/// Reads an object with its envelope and gives it the kind that the envelope names.
pub fn from_slice(data: &[u8], schema: &TypedSchema) -> Result<Value, DecodeError> {
    let envelope = Envelope::read(data)?;
    let mut value = decode(envelope.raw, schema)?;
    let object = value.make_object();
    for (name, text) in [("apiVersion", envelope.type_meta.api_version), ("kind", envelope.type_meta.kind)] {
        if !text.is_empty() {
            object.insert(name, text);
        }
    }
    Ok(value)
}

impl From<WireError> for DecodeError {
    fn from(e: WireError) -> DecodeError {
        DecodeError::Malformed(e.to_string())
    }
}
