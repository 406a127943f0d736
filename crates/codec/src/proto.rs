//! shim
use crate::DecodeError;
use crate::json::TypeMeta;
use kubelith_meta::*;
use kubelith_schema::TypedSchema;
pub const MAGIC: &[u8] = b"k8s\0";
pub struct Opened<'a> {
    pub type_meta: TypeMeta,
    pub raw: &'a [u8],
}
pub fn open(_: &[u8]) -> Result<Opened<'_>, DecodeError> {
    Err(DecodeError::malformed("shim"))
}
pub fn decode_message(_: &TypedSchema, _: &[u8]) -> Result<Value, DecodeError> {
    Err(DecodeError::malformed("shim"))
}
pub fn encode_message(_: &TypedSchema, _: &Value) -> Result<Vec<u8>, DecodeError> {
    Err(DecodeError::malformed("shim"))
}
pub fn envelope(_: &GroupVersionKind, _: &[u8]) -> Vec<u8> {
    Vec::new()
}
pub fn list_chunks(_: &GroupVersionKind, _: &Value, _: Vec<bytes::Bytes>) -> Result<Vec<bytes::Bytes>, DecodeError> {
    Err(DecodeError::malformed("shim"))
}
