//! Reading objects out of watch caches.

use kubelith_codec::json;
use kubelith_meta::Value;
use kubelith_store::cache::CachedObject;
use memchr::memmem::Finder;
use std::sync::OnceLock;

/// The whole object; `None` if it cannot be read.
pub fn value(object: &CachedObject) -> Option<Value> {
    json::parse(&object.json_once()).ok()
}

/// Whether the text of an object has this somewhere: a quick look before it is parsed.
pub fn mentions(object: &CachedObject, text: &str) -> bool {
    memchr::memmem::find(&object.json_once(), text.as_bytes()).is_some()
}

/// A text that each change of many objects is searched for: how to search is found out once.
pub struct Needle {
    text: &'static str,
    finder: OnceLock<Finder<'static>>,
}

impl Needle {
    pub const fn new(text: &'static str) -> Needle {
        Needle { text, finder: OnceLock::new() }
    }

    /// As [`mentions`].
    pub fn is_in(&self, object: &CachedObject) -> bool {
        let finder = self.finder.get_or_init(|| Finder::new(self.text));
        finder.find(&object.json_once()).is_some()
    }
}

/// How the members of metadata begin that few objects have.
pub static BEING_DELETED: Needle = Needle::new("\"deletionTimestamp\":");
pub static OWNED: Needle = Needle::new("\"ownerReferences\":[");
