//! What the server makes up: suffixes of generated names, and UIDs. Randomness comes in through a parameter, so
//! that tests can choose it; [`random_bits`] is what servers pass.

use crate::Str;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// No vowels, so that no words come out, and no characters that look alike.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// A generated name is a DNS label at most, whatever the resource would allow.
const MAX_PREFIX: usize = 63 - SUFFIX_LENGTH;

/// A name that starts with `prefix`, or as much of it as fits.
pub fn generate_name(prefix: &str, random: impl FnMut() -> u64) -> Str {
    let prefix = &prefix[..prefix.floor_char_boundary(MAX_PREFIX)];
    let mut name = Str::from(prefix);
    name.push_str(&suffix(SUFFIX_LENGTH, random));
    name
}

/// Random letters and digits.
pub fn suffix(length: usize, mut random: impl FnMut() -> u64) -> Str {
    let mut out = Str::with_capacity(length);
    let (mut bits, mut left) = (0, 0);
    while out.len() < length {
        if left < 5 {
            (bits, left) = (random(), 60);
        }
        // Indices beyond the alphabet are dropped rather than wrapped: every character is as likely as any.
        if let Some(c) = ALPHABET.get((bits & 31) as usize) {
            out.push(char::from(*c));
        }
        bits >>= 5;
        left -= 5;
    }
    out
}

/// Makes a text of the same characters as generated names out of any other, character by character: hashes look
/// like suffixes then.
pub fn safe_encode(text: &str) -> Str {
    text.chars().map(|c| char::from(ALPHABET[c as usize % ALPHABET.len()])).collect()
}

/// A UUID of version 4.
pub fn uid(mut random: impl FnMut() -> u64) -> Str {
    let bits = u128::from(random()) << 64 | u128::from(random());
    let uuid = uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid();
    let mut buffer = uuid::Uuid::encode_buffer();
    Str::from(uuid.hyphenated().encode_lower(&mut buffer) as &str)
}

/// Where a server takes uids and suffixes of names from.
#[derive(Debug, Clone, Default)]
pub enum MadeUp {
    /// Nobody can guess them.
    #[default]
    Random,
    /// For tests: the same in every run.
    Seeded(Arc<Seeded>),
}

/// What is made up follows from a seed, from what it is for, and from how often something was made up for that: not from what else
/// happens, and in which order.
#[derive(Debug)]
pub struct Seeded {
    seed: u64,
    /// By purpose.
    made: Mutex<HashMap<u64, u64>>,
}

impl MadeUp {
    pub fn seeded(seed: u64) -> MadeUp {
        MadeUp::Seeded(Arc::new(Seeded { seed, made: Mutex::default() }))
    }

    /// What goes on from the same place, by itself.
    pub fn fork(&self) -> MadeUp {
        match self {
            MadeUp::Random => MadeUp::Random,
            MadeUp::Seeded(seeded) => {
                let made = Mutex::new(seeded.made.lock().unwrap_or_else(PoisonError::into_inner).clone());
                MadeUp::Seeded(Arc::new(Seeded { seed: seeded.seed, made }))
            }
        }
    }

    /// As [`uid`].
    pub fn uid(&self, purpose: &[&str]) -> Str {
        match self {
            MadeUp::Random => uid(random_bits),
            MadeUp::Seeded(seeded) => uid(seeded.bits("uid", purpose)),
        }
    }

    /// The uid that [`MadeUp::uid`] would give. It stays the same until it [was used](MadeUp::used_uid): of several who try to make the
    /// same object one succeeds, and it must not matter who and after how many.
    pub fn next_uid(&self, purpose: &[&str]) -> Str {
        match self {
            MadeUp::Random => uid(random_bits),
            MadeUp::Seeded(seeded) => uid(seeded.next_bits("uid", purpose)),
        }
    }

    pub fn used_uid(&self, purpose: &[&str]) {
        if let MadeUp::Seeded(seeded) = self {
            drop(seeded.bits("uid", purpose));
        }
    }

    /// As [`generate_name`].
    pub fn generate_name(&self, prefix: &str, purpose: &[&str]) -> Str {
        match self {
            MadeUp::Random => generate_name(prefix, random_bits),
            MadeUp::Seeded(seeded) => generate_name(prefix, seeded.bits("name", purpose)),
        }
    }

    /// As [`random_bits`].
    pub fn bits(&self, purpose: &[&str]) -> u64 {
        match self {
            MadeUp::Random => random_bits(),
            MadeUp::Seeded(seeded) => seeded.bits("bits", purpose)(),
        }
    }
}

impl Seeded {
    fn bits(&self, kind: &str, purpose: &[&str]) -> impl FnMut() -> u64 + use<> {
        let hash = self.hash(kind, purpose);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = *made.entry(hash).and_modify(|turn| *turn += 1).or_insert(0);
        bits_of(hash, turn)
    }

    /// What `bits` gives next.
    fn next_bits(&self, kind: &str, purpose: &[&str]) -> impl FnMut() -> u64 + use<> {
        let hash = self.hash(kind, purpose);
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        bits_of(hash, made.get(&hash).map_or(0, |turn| turn + 1))
    }

    fn hash(&self, kind: &str, purpose: &[&str]) -> u64 {
        // FNV-1a, each part with an end of its own.
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.seed;
        for part in [kind].iter().chain(purpose) {
            for byte in part.bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        hash
    }
}

fn bits_of(hash: u64, turn: u64) -> impl FnMut() -> u64 {
    let mut state = hash.wrapping_add(turn.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17));
    move || split_mix(&mut state)
}

/// SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Bits that nobody can guess.
pub fn random_bits() -> u64 {
    thread_local! {
        static DRAWN: RefCell<Drawn> = const { RefCell::new(Drawn { bytes: [0; AT_ONCE], left: 0 }) };
    }
    DRAWN.with_borrow_mut(Drawn::next)
}

const AT_ONCE: usize = 512;

/// Random bytes of a thread, many of one system call: what is made up for one object takes half a dozen draws.
struct Drawn {
    bytes: [u8; AT_ONCE],
    left: usize,
}

impl Drawn {
    fn next(&mut self) -> u64 {
        if self.left == 0 {
            getrandom::fill(&mut self.bytes).expect("the system has random numbers");
            self.left = AT_ONCE;
        }
        let (unused, drawn) = self.bytes[..self.left].split_at_mut(self.left - size_of::<u64>());
        self.left = unused.len();
        let mut bits = [0; size_of::<u64>()];
        bits.copy_from_slice(drawn);
        // Nobody finds here what was given out.
        drawn.fill(0);
        u64::from_ne_bytes(bits)
    }
}

/// Bits that differ each time, but that can be guessed by who has seen some: for names of what is no secret. They
/// cost no system call.
pub fn differing_bits() -> u64 {
    thread_local! {
        static STATE: std::cell::Cell<u64> = std::cell::Cell::new(random_bits());
    }
    let mut state = STATE.get();
    let bits = split_mix(&mut state);
    STATE.set(state);
    bits
}

/// A number from 0 to just below 1, for jitter.
pub fn unit() -> f64 {
    // As many bits as a double holds exactly.
    (differing_bits() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> impl FnMut() -> u64 {
        let mut state = 0u64;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        }
    }

    #[test]
    fn no_bits_are_given_out_twice() {
        let drawn: std::collections::HashSet<u64> = (0..1000).map(|_| random_bits()).collect();
        assert_eq!(drawn.len(), 1000);
        assert!(!drawn.contains(&0));
    }

    #[test]
    fn generated_names_fit_a_label() {
        for (prefix, kept) in
            [("web-", "web-"), (&*"a".repeat(80), &*"a".repeat(58)), (&*"é".repeat(40), &*"é".repeat(29))]
        {
            let name = generate_name(prefix, counter());
            let (head, tail) = name.split_at(kept.len());
            assert_eq!((head, tail.len()), (kept, 5));
            assert!(tail.bytes().all(|b| ALPHABET.contains(&b)), "{tail}");
        }
        assert_eq!(suffix(3, || 0), "bbb");
        assert_eq!(suffix(14, || 26), "9bbbbbbbbbbb9b");
        // An index beyond the alphabet yields nothing.
        assert_eq!(suffix(12, || 31), "b".repeat(12));
        assert_eq!(safe_encode("68b329"), "bdw76f");
    }

    #[test]
    fn what_is_made_up_by_a_seed_does_not_depend_on_the_order() {
        let (one, two) = (MadeUp::seeded(7), MadeUp::seeded(7));
        let first = (one.uid(&["pods", "a"]), one.uid(&["pods", "b"]), one.uid(&["pods", "a"]));
        let again = (two.uid(&["pods", "b"]), two.uid(&["pods", "a"]), two.fork().uid(&["pods", "a"]));
        assert_eq!((&first.0, &first.1, &first.2), (&again.1, &again.0, &again.2));
        assert!(first.0 != first.1 && first.0 != first.2);
        assert_eq!(two.uid(&["pods", "a"]), first.2, "a fork goes its own way");
        let three = MadeUp::seeded(7);
        assert_eq!(
            (three.next_uid(&["pods", "a"]), three.next_uid(&["pods", "a"])),
            (first.0.clone(), first.0.clone())
        );
        three.used_uid(&["pods", "a"]);
        assert_eq!(three.next_uid(&["pods", "a"]), first.2);
        assert_ne!(MadeUp::seeded(8).uid(&["pods", "a"]), first.0);
        assert_ne!(MadeUp::seeded(7).uid(&["pod", "sa"]), first.0);
        assert_eq!(one.generate_name("x-", &["pods"]), two.generate_name("x-", &["pods"]));
        assert_ne!(MadeUp::Random.uid(&[]), MadeUp::Random.uid(&[]));
    }

    #[test]
    fn uids_are_version_4() {
        assert_eq!(uid(|| 0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uid(|| u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_ne!(uid(random_bits), uid(random_bits));
        assert_ne!(random_bits(), random_bits());
        assert!((0.0..1.0).contains(&unit()) && unit() != unit());
    }
}
