//! What the server makes up: suffixes of generated names, and UIDs. Randomness comes in through a parameter, so
//! that tests can choose it; [`random_bits`] is what servers pass.

use crate::Str;

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

/// Bits that nobody can guess.
pub fn random_bits() -> u64 {
    let bits = uuid::Uuid::new_v4().as_u128();
    // Version and variant are not random; folding the halves onto each other covers them.
    (bits >> 64) as u64 ^ (bits as u64).rotate_left(32)
}

/// Bits that differ each time, but that can be guessed by who has seen some: for names of what is no secret. They
/// cost no system call.
pub fn differing_bits() -> u64 {
    thread_local! {
        static STATE: std::cell::Cell<u64> = std::cell::Cell::new(random_bits());
    }
    // SplitMix64.
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
    fn uids_are_version_4() {
        assert_eq!(uid(|| 0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uid(|| u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_ne!(uid(random_bits), uid(random_bits));
        assert_ne!(random_bits(), random_bits());
        assert!((0.0..1.0).contains(&unit()) && unit() != unit());
    }
}
