//! Eight bytes of a text looked at together, as one number. A loop that asks each byte is as quick where the compiler takes it for one
//! operation on sixteen of them; by a profile of runs, or where it saves size, it leaves the loop as it is.

use std::ops::BitOr;

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = EACH << 7;

/// Eight bytes, the first of them lowest.
#[derive(Clone, Copy)]
pub struct Word(u64);

/// Bytes that were looked for. What is said of bytes beyond ASCII is wrong, and so may be what is said of those behind one that is found.
#[derive(Clone, Copy)]
pub struct Found(u64);

/// Bytes of a word of which the first that is marked should be. Those behind it may be marked wrongly.
#[derive(Clone, Copy)]
pub struct Marks(u64);

impl Word {
    #[inline(always)]
    pub fn of(bytes: &[u8; 8]) -> Word {
        Word(u64::from_le_bytes(*bytes))
    }

    /// The bytes that are `byte`, which is ASCII.
    #[inline(always)]
    pub const fn equal(self, byte: u8) -> Found {
        Word(self.0 ^ (EACH * byte as u64)).below(1)
    }

    /// The bytes that are `byte`, which is beyond ASCII.
    #[inline(always)]
    pub const fn beyond(self, byte: u8) -> Marks {
        let differing = self.0 ^ (EACH * byte as u64);
        Marks(differing.wrapping_sub(EACH) & !differing & HIGHEST)
    }

    /// The bytes below `limit`, which is ASCII.
    #[inline(always)]
    pub const fn below(self, limit: u8) -> Found {
        Found(self.0.wrapping_sub(EACH * limit as u64))
    }

    /// The word with these bits set in each byte, which are those of an ASCII character.
    #[inline(always)]
    pub const fn with(self, bits: u8) -> Word {
        Word(self.0 | (EACH * bits as u64))
    }

    /// What was found in this word.
    #[inline(always)]
    pub const fn ascii(self, found: Found) -> Marks {
        Marks(found.0 & !self.0 & HIGHEST)
    }

    /// What was found in this word, and bytes beyond ASCII.
    #[inline(always)]
    pub const fn ascii_and_beyond(self, found: Found) -> Marks {
        Marks((found.0 | self.0) & HIGHEST)
    }
}

impl Marks {
    /// The place of the first byte that is marked.
    #[inline(always)]
    pub const fn first(self) -> Option<usize> {
        if self.is_none() { None } else { Some(self.0.trailing_zeros() as usize / 8) }
    }

    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Found {
    type Output = Found;

    #[inline(always)]
    fn bitor(self, other: Found) -> Found {
        Found(self.0 | other.0)
    }
}

impl BitOr for Marks {
    type Output = Marks;

    #[inline(always)]
    fn bitor(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }
}

/// How many bytes a text begins with of which none is marked by `stops`.
#[inline(always)]
pub fn run_len(text: &[u8], stops: impl Fn(Word) -> Marks) -> usize {
    let mut at = 0;
    while let Some(chunk) = text[at..].first_chunk() {
        match stops(Word::of(chunk)).first() {
            None => at += 8,
            Some(run) => return at + run,
        }
    }
    let rest = &text[at..];
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    at + stops(Word::of(&last)).first().map_or(rest.len(), |run| run.min(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte, at every place, between bytes that could be taken for it where one borrows from the next.
    #[test]
    fn the_first_mark_is_right() {
        type Rule = (fn(Word) -> Found, fn(u8) -> bool);
        let rules: [Rule; 6] = [
            (|word| word.equal(b'"'), |byte| byte == b'"'),
            (|word| word.equal(0), |byte| byte == 0),
            (|word| word.equal(0x7f), |byte| byte == 0x7f),
            (|word| word.below(0x20), |byte| byte < 0x20),
            (|word| word.below(0x7f), |byte| byte < 0x7f),
            (|word| word.with(2).equal(b'>') | word.equal(b'&'), |byte| b"<>&".contains(&byte)),
        ];
        for (find, is_found) in rules {
            for byte in 0..=u8::MAX {
                for (place, around) in
                    (0..8).flat_map(|place| [0, 1, b'!', b'#', b'a', 0x7f, 0x80, 0xe1, 0xe3, 0xff].map(|b| (place, b)))
                {
                    let mut bytes = [around; 8];
                    bytes[place] = byte;
                    let word = Word::of(&bytes);
                    let found = find(word);
                    let first = |wanted: &dyn Fn(u8) -> bool| bytes.iter().position(|byte| wanted(*byte));
                    assert_eq!(word.ascii(found).first(), first(&is_found), "{bytes:?}");
                    assert_eq!(word.beyond(0xe2).first(), first(&|byte| byte == 0xe2), "{bytes:?}");
                    let beyond = first(&|byte| byte >= 0x80 || is_found(byte));
                    assert_eq!(word.ascii_and_beyond(found).first(), beyond, "{bytes:?}");
                }
            }
        }
    }

    /// Wherever the byte stands among those that are looked at together, and behind them.
    #[test]
    fn a_run_ends_at_the_first_byte_that_stops_it() {
        for len in 0..50 {
            for at in 0..=len {
                let mut text = vec![b'a'; len];
                text[at..].fill(b'"');
                assert_eq!(run_len(&text, |word| word.ascii(word.equal(b'"'))), at, "{len}");
                assert_eq!(run_len(&text, |word| word.ascii(word.equal(0))), len, "{len}");
            }
        }
    }
}
