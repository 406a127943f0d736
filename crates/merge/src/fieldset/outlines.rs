//! Outlines that were made a moment ago. Objects that are made of one template, and written by the same programs, have the
//! same sets of fields.

use super::outline::Outline;
use kubelith_meta::quick_hash::QuickHash;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

/// How many are kept: with their texts some 500 KiB where these have 2 KiB, and at most 5 MiB.
const KEPT: usize = 1 << BITS;
const BITS: u32 = 7;
/// Longer texts are not. An outline takes as much as its text, and three times as much if all of that is short keys.
const MAX_TEXT: usize = 8 << 10;

/// The outlines of texts, each in the place that its hash gives it, until another one comes there. Whoever makes texts collide
/// has them outlined anew each time, and no more.
#[derive(Debug, Default)]
pub struct Outlines(Mutex<Vec<Option<Arc<Outline>>>>);

impl Outlines {
    /// The outline of a text, if it has one. Equal texts are shared from then on.
    pub(crate) fn of(&self, text: &Arc<str>) -> Option<Arc<Outline>> {
        if text.len() > MAX_TEXT {
            return Outline::of(text).map(Arc::new);
        }
        let place = (QuickHash::default().hash_one(text.as_bytes()) >> (u64::BITS - BITS)) as usize;
        let known = self.0.lock().expect("no panic under this lock").get(place).cloned().flatten();
        if let Some(known) = known.filter(|known| known.text() == text) {
            return Some(known);
        }
        let outline = Arc::new(Outline::of(text)?);
        let mut kept = self.0.lock().expect("no panic under this lock");
        kept.resize(KEPT, None);
        kept[place] = Some(outline.clone());
        Some(outline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_an_outline() {
        let outlines = Outlines::default();
        let of = |text: &str| outlines.of(&text.into());
        let first = of(r#"{"f:a":{}}"#).unwrap();
        assert!(Arc::ptr_eq(&first, &of(r#"{"f:a":{}}"#).unwrap()));
        assert!(of(r#"{"f:a" : {}}"#).is_none());
        for i in 0..1000 {
            let text = format!(r#"{{"f:a{i}":{{}}}}"#);
            assert_eq!(&**of(&text).unwrap().text(), text);
        }
        assert!(!Arc::ptr_eq(&first, &of(r#"{"f:a":{}}"#).unwrap()), "others took its place");
        let long = format!(r#"{{"f:{}":{{}}}}"#, "a".repeat(MAX_TEXT));
        assert!(!Arc::ptr_eq(&of(&long).unwrap(), &of(&long).unwrap()));
    }
}
