//! The text of a cached object: as it is, or compressed once nobody has used it for a while. Who reads it gets the same bytes.
//!
//! Objects are shared by snapshots, the history, watchers and forks, so what changes is within the shared object: under a lock that is
//! held for as long as one text is unpacked, never while one is packed.

use bytes::Bytes;
use lz4_flex::block::{compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Instant;

/// Shorter texts stay as they are: what stands around a packed one takes a good part of what it saves.
const SHORT: usize = 512;
/// Bytes of a dictionary that each text packed with it pays for, at most: where there are fewer such texts, they are packed with
/// another one.
const DICTIONARY_SHARE: usize = 1 << 10;
/// Used since the last sweep.
const JUST_NOW: u32 = 0;
/// It did not become shorter. It is tried again once somebody has used it.
const NEVER: u32 = u32::MAX;

/// What texts of one kind have in common, taken from some of them.
#[derive(Debug)]
pub(super) struct Dictionary(Box<[u8]>);

impl Dictionary {
    pub fn new(bytes: Vec<u8>) -> Dictionary {
        Dictionary(bytes.into())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether too few texts need it. One user is who asks.
    fn is_wasted(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) * DICTIONARY_SHARE < self.len()
    }
}

#[derive(Debug)]
pub(super) struct Text {
    held: RwLock<Held>,
    /// Of the text, packed or not.
    length: usize,
    /// When a sweep first saw it after its last use, in its own time.
    unused_since: AtomicU32,
}

#[derive(Debug)]
enum Held {
    Plain(Bytes),
    Packed(Box<Packed>),
}

#[derive(Debug)]
struct Packed {
    dictionary: Arc<Dictionary>,
    bytes: Box<[u8]>,
}

/// What a sweep sees.
#[derive(Debug)]
pub(super) enum Look {
    /// It is not worth packing.
    Settled,
    /// It was used, or not long enough ago.
    Used,
    /// It can be packed; it may be packed with a dictionary that few others need.
    Unused,
    Packed {
        bytes: usize,
        dictionary: Arc<Dictionary>,
    },
}

/// Seconds of this process, by which texts are unused. Not 0.
pub(super) fn sweep_time() -> u32 {
    static START: OnceLock<Instant> = OnceLock::new();
    u32::try_from(START.get_or_init(Instant::now).elapsed().as_secs()).unwrap_or(NEVER - 2) + 1
}

impl Text {
    pub fn new(text: Bytes) -> Text {
        let length = text.len();
        Text { held: RwLock::new(Held::Plain(text)), length, unused_since: AtomicU32::new(JUST_NOW) }
    }

    /// Of the text as it is read.
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// For who reads many: it stays as it is.
    pub fn read(&self) -> Bytes {
        match &*self.held.read().expect("no panic under this lock") {
            Held::Plain(text) => text.clone(),
            Held::Packed(packed) => packed.unpack(self.length),
        }
    }

    /// For who wants this one. If it is the second use in a short time, it is kept unpacked.
    pub fn read_again(&self) -> Bytes {
        let text = self.read();
        let is_second = self.unused_since.load(Ordering::Relaxed) == JUST_NOW;
        if !is_second {
            self.unused_since.store(JUST_NOW, Ordering::Relaxed);
        } else if self.is_packed() {
            *self.held.write().expect("no panic under this lock") = Held::Plain(text.clone());
        }
        text
    }

    pub fn is_packed(&self) -> bool {
        matches!(&*self.held.read().expect("no panic under this lock"), Held::Packed(_))
    }

    /// What there is to do at `now`, for texts that are unused after some seconds. A dictionary that is `latest` is not wasted.
    pub fn look(&self, now: u32, after: u32, latest: Option<&Arc<Dictionary>>) -> Look {
        if self.length < SHORT {
            return Look::Settled;
        }
        let since = self.unused_since.load(Ordering::Relaxed);
        if since == JUST_NOW {
            // A use that comes between is forgotten: it costs one more unpacking.
            self.unused_since.store(now, Ordering::Relaxed);
        }
        match &*self.held.read().expect("no panic under this lock") {
            Held::Packed(packed)
                if packed.dictionary.is_wasted() && latest.is_some_and(|d| !Arc::ptr_eq(d, &packed.dictionary)) =>
            {
                Look::Unused
            }
            Held::Packed(packed) => Look::Packed { bytes: packed.bytes.len(), dictionary: packed.dictionary.clone() },
            Held::Plain(_) if since == NEVER => Look::Settled,
            Held::Plain(_) if since == JUST_NOW || now.saturating_sub(since) < after => Look::Used,
            Held::Plain(_) => Look::Unused,
        }
    }

    /// Packs it, if that saves an eighth at least. `room` is space to work in. Answers what it takes then.
    pub fn pack(&self, dictionary: &Arc<Dictionary>, now: u32, room: &mut Vec<u8>) -> Option<usize> {
        let text = self.read();
        room.resize(room.len().max(get_maximum_output_size(text.len())), 0);
        let length = compress_into_with_dict(&text, room, &dictionary.0).expect("there is room for the worst case");
        if length > text.len() - text.len() / 8 {
            self.unused_since.store(NEVER, Ordering::Relaxed);
            return None;
        }
        let packed = Packed { dictionary: dictionary.clone(), bytes: room[..length].into() };
        self.unused_since.store(now, Ordering::Relaxed);
        let before = std::mem::replace(
            &mut *self.held.write().expect("no panic under this lock"),
            Held::Packed(Box::new(packed)),
        );
        drop(before);
        Some(length)
    }
}

impl Packed {
    fn unpack(&self, length: usize) -> Bytes {
        let mut text = vec![0; length];
        let unpacked = decompress_into_with_dict(&self.bytes, &mut text, &self.dictionary.0);
        assert!(unpacked.is_ok_and(|unpacked| unpacked == length), "what was packed in memory can be unpacked");
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(words: &[String]) -> Bytes {
        Bytes::from(words.concat())
    }

    proptest! {
        /// Whatever stands in them, and in the dictionary.
        #[test]
        fn packed_texts_are_read_as_they_were(
            common in "[ -~é\u{0}-\u{1f}]{0,900}",
            own in proptest::collection::vec("[a-z\":,{}0-9]{0,300}|\\PC{0,60}|a{600}", 0..40),
        ) {
            let dictionary = Arc::new(Dictionary::new([common.clone().into_bytes(), vec![b'x'; 700]].concat()));
            let plain = text(&[vec![common], own].concat());
            let packed = Text::new(plain.clone());
            let taken = packed.pack(&dictionary, 1, &mut Vec::new());
            prop_assert_eq!(packed.is_packed(), taken.is_some());
            prop_assert!(taken.is_none_or(|taken| taken <= plain.len()));
            prop_assert_eq!(&packed.read(), &plain);
            prop_assert_eq!(packed.len(), plain.len());
            prop_assert_eq!(&packed.read_again(), &plain);
            prop_assert_eq!(&packed.read_again(), &plain);
            prop_assert!(!packed.is_packed() || plain.is_empty());
        }
    }

    #[test]
    fn texts_are_unused_after_a_while_and_two_uses_unpack_them() {
        let plain = Bytes::from(vec![b'a'; 4000]);
        let dictionary = Arc::new(Dictionary::new(vec![b'a'; 800]));
        let of = Text::new(plain.clone());
        let is_unused = |now| matches!(of.look(now, 30, None), Look::Unused);
        assert!(!is_unused(100) && !is_unused(129) && is_unused(130));
        of.read();
        assert!(is_unused(131), "who reads all uses none");
        of.read_again();
        assert!(!is_unused(140) && !is_unused(169) && is_unused(170));
        assert!(of.pack(&dictionary, 170, &mut Vec::new()).unwrap() < 100);
        assert!(matches!(of.look(500, 30, None), Look::Packed { .. }));
        of.read_again();
        assert!(of.is_packed());
        assert!(matches!(of.look(510, 30, None), Look::Packed { .. }));
        of.read_again();
        assert!(of.is_packed(), "the use before was long ago");
        assert_eq!(of.read_again(), plain);
        assert!(!of.is_packed());
        assert!(!is_unused(520) && is_unused(550));
    }

    #[test]
    fn what_does_not_become_shorter_stays() {
        let noise: Vec<u8> =
            (0..1000u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i % 31).to_le_bytes()).collect();
        let dictionary = Arc::new(Dictionary::new(vec![b'a'; 800]));
        let of = Text::new(noise.into());
        assert_eq!(of.pack(&dictionary, 1, &mut Vec::new()), None);
        assert!(matches!(of.look(100, 30, None), Look::Settled));
        let short = Text::new(vec![b'a'; SHORT - 1].into());
        assert!(matches!(short.look(100, 0, None), Look::Settled));
    }

    #[test]
    fn few_texts_do_not_keep_a_dictionary() {
        let (one, other) = (Arc::new(Dictionary::new(vec![b'a'; 8000])), Arc::new(Dictionary::new(vec![b'a'; 8000])));
        let of = Text::new(vec![b'a'; 4000].into());
        of.pack(&one, 1, &mut Vec::new()).unwrap();
        assert!(matches!(of.look(2, 0, Some(&other)), Look::Unused));
        assert!(matches!(of.look(2, 0, Some(&one)), Look::Packed { .. }), "it is the one that is used now");
        assert!(matches!(of.look(2, 0, None), Look::Packed { .. }));
    }

    #[test]
    fn it_is_read_while_it_is_packed() {
        let plain = Bytes::from([vec![b'b'; 3000], vec![b'a'; 3000]].concat());
        let of = Text::new(plain.clone());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..5000).for_each(|_| assert_eq!(of.read_again(), plain)));
            }
            scope.spawn(|| (0..5000).for_each(|_| assert_eq!(of.read(), plain)));
            let dictionaries = [b'a', b'b'].map(|letter| Arc::new(Dictionary::new(vec![letter; 2000])));
            for round in 0..5000 {
                of.pack(&dictionaries[round % 2], 1, &mut Vec::new()).unwrap();
            }
        });
        assert_eq!(of.read(), plain);
    }
}
