//! shim
use kubelith_meta::*;
pub fn protobuf(_: &str, _: &GroupVersionKind, _: &[u8]) -> Vec<u8> {
    Vec::new()
}
pub fn protobuf_raw(_: &str, _: &[u8]) -> Vec<u8> {
    Vec::new()
}
pub fn json(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut v = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
    v.extend_from_slice(object);
    v.extend_from_slice(b"}\n");
    v
}
