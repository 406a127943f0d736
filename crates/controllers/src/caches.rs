//! Reading objects out of watch caches.

use kubelith_codec::json;
use kubelith_meta::Value;
use kubelith_store::cache::CachedObject;

/// The whole object; `None` if it cannot be read.
pub fn value(object: &CachedObject) -> Option<Value> {
    json::parse(&object.json_once()).ok()
}

/// Whether the text of an object has this somewhere: a quick look before it is parsed.
pub fn mentions(object: &CachedObject, text: &str) -> bool {
    memchr::memmem::find(&object.json_once(), text.as_bytes()).is_some()
}

/// How the members of metadata begin that few objects have.
pub const BEING_DELETED: &str = "\"deletionTimestamp\":";
pub const OWNED: &str = "\"ownerReferences\":[";
