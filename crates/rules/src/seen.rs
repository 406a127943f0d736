//! Names that were seen already. There are few in nearly every list, and they are compared faster than put into a set.

use kubelith_meta::keys;
use std::collections::BTreeSet;

/// So many are kept in place.
const FEW: usize = 16;

#[derive(Default)]
pub struct Seen<'a> {
    /// A bit for each name, which several may share: most names are new and seen to be so by theirs.
    bits: u64,
    count: usize,
    few: [&'a str; FEW],
    more: Option<BTreeSet<&'a str>>,
}

impl<'a> Seen<'a> {
    /// Whether the name is new.
    pub fn insert(&mut self, name: &'a str) -> bool {
        let bit = bit_of(name);
        if self.bits & bit != 0 && self.has(name) {
            return false;
        }
        self.bits |= bit;
        match self.few.get_mut(self.count) {
            Some(place) => *place = name,
            None => drop(self.more.get_or_insert_default().insert(name)),
        }
        self.count += 1;
        true
    }

    fn has(&self, name: &str) -> bool {
        let few = &self.few[..self.count.min(FEW)];
        few.iter().any(|seen| keys::same(seen, name)) || self.more.as_ref().is_some_and(|more| more.contains(name))
    }
}

/// By its length and its ends: the last bytes are those in which names differ.
fn bit_of(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let end = match (bytes.last_chunk::<4>(), bytes) {
        (Some(last), _) => u32::from_le_bytes(*last),
        (None, [first, .., last]) => u32::from(*first) << 8 | u32::from(*last),
        (None, _) => bytes.first().copied().map_or(0, u32::from),
    };
    1 << ((end ^ bytes.len() as u32).wrapping_mul(0x9e37_79b9) >> 26)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_new_once() {
        let names: Vec<String> =
            (0..100).map(|i| format!("NAME_{i}")).chain(["", "a", "ab", "abc"].map(String::from)).collect();
        let mut seen = Seen::default();
        for (i, name) in names.iter().enumerate() {
            assert!(seen.insert(name), "{name}");
            assert!(names[..=i].iter().all(|earlier| !seen.insert(earlier)), "{name}");
        }
    }
}
