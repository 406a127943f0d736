//! Comparing the keys of objects. They are short, and a call of the C library's `memcmp` takes longer than looking at
//! eight bytes at a time.

use std::cmp::Ordering;

/// Whether two keys are the same.
#[inline]
pub fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        // The first and the last bytes overlap in the middle.
        8..=16 => a.first_chunk::<8>() == b.first_chunk::<8>() && a.last_chunk::<8>() == b.last_chunk::<8>(),
        4..=7 => a.first_chunk::<4>() == b.first_chunk::<4>() && a.last_chunk::<4>() == b.last_chunk::<4>(),
        _ => a == b,
    }
}

/// The order of two keys, by their bytes.
#[inline]
pub fn order(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(x), Some(y)) if x != y => return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y)),
        (Some(_), Some(_)) => return a[8..].cmp(&b[8..]),
        _ => {}
    }
    match (a.first_chunk::<4>(), b.first_chunk::<4>()) {
        (Some(x), Some(y)) if x != y => u32::from_be_bytes(*x).cmp(&u32::from_be_bytes(*y)),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_as_strings_do() {
        let alphabet =
            ["", "a", "ab", "abc", "abcd", "abce", "bbcd", "abcdefgh", "abcdefgi", "bbcdefgh", "ü", "\u{10000}"];
        let mut keys: Vec<String> = Vec::new();
        for a in alphabet {
            for b in alphabet {
                keys.push(format!("{a}{b}"));
                keys.push(format!("{b}0123456789{a}"));
            }
        }
        for a in &keys {
            for b in &keys {
                assert_eq!((same(a, b), order(a, b)), (a == b, a.cmp(b)), "{a} {b}");
            }
        }
    }
}
