//! What kinds of this group share.

use kubelith_codec::base64;
use kubelith_meta::Value;
use kubelith_rules::common::Fields;

/// Bytes, which are text in base64 on the wire.
pub fn bytes(object: &Value, key: &str) -> Vec<u8> {
    base64::decode(object.text(key)).unwrap_or_default()
}
