//! The content of a file in memory. Copies share blocks until one of them writes, and a block that nobody wrote takes no memory: a
//! simulation copies a disk some times for each schedule.

use std::sync::Arc;

/// What a file system gives out.
pub const BLOCK: usize = 4096;

type Block = Arc<[u8; BLOCK]>;

#[derive(Debug, Clone, Default)]
pub struct Blocks {
    len: usize,
    /// `None` is all zeros.
    blocks: Vec<Option<Block>>,
}

impl Blocks {
    pub fn len(&self) -> usize {
        self.len
    }

    /// What is cut off is gone: a file that grows again grows by zeros.
    pub fn resize(&mut self, len: usize) {
        self.blocks.resize(len.div_ceil(BLOCK), None);
        if len < self.len
            && !len.is_multiple_of(BLOCK)
            && let Some(Some(last)) = self.blocks.last_mut()
        {
            Arc::make_mut(last)[len % BLOCK..].fill(0);
        }
        self.len = len;
    }

    /// False if the file ends before.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        if offset + out.len() > self.len {
            return false;
        }
        for (block, within, part) in parts(offset, out.len()) {
            match &self.blocks[block] {
                Some(block) => out[part.clone()].copy_from_slice(&block[within..within + part.len()]),
                None => out[part].fill(0),
            }
        }
        true
    }

    /// Within the file.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        for (block, within, part) in parts(offset, data.len()) {
            let block = self.blocks[block].get_or_insert_with(|| Arc::new([0; BLOCK]));
            Arc::make_mut(block)[within..within + part.len()].copy_from_slice(&data[part]);
        }
    }

    pub fn flip(&mut self, bit: usize) {
        let mut byte = [0];
        if self.read(bit / 8, &mut byte) {
            self.write(bit / 8, &[byte[0] ^ 1 << (bit % 8)]);
        }
    }
}

/// The blocks that so many bytes from an offset on lie in: which, from where in it, and which of the bytes.
fn parts(offset: usize, len: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done;
        let count = (BLOCK - at % BLOCK).min(len - done);
        let part = done..done + count;
        done += count;
        (count > 0).then_some((at / BLOCK, at % BLOCK, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn content(blocks: &Blocks) -> Vec<u8> {
        let mut out = vec![1; blocks.len()];
        assert!(blocks.read(0, &mut out));
        out
    }

    #[test]
    fn is_as_a_vector_and_copies_are_apart() {
        let mut random = Random::new(1, 1);
        for _ in 0..200 {
            let (mut blocks, mut plain) = (Blocks::default(), Vec::new());
            let mut copy = (blocks.clone(), plain.clone());
            for _ in 0..20 {
                match random.below(5) {
                    0 => {
                        let len = random.below(5 * BLOCK);
                        blocks.resize(len);
                        plain.resize(len, 0);
                    }
                    1 => copy = (blocks.clone(), plain.clone()),
                    2 if !plain.is_empty() => {
                        let bit = random.below(plain.len() * 8);
                        blocks.flip(bit);
                        plain[bit / 8] ^= 1 << (bit % 8);
                    }
                    _ if !plain.is_empty() => {
                        let begin = random.below(plain.len());
                        let data = vec![random.draw() as u8; random.below(plain.len() - begin)];
                        blocks.write(begin, &data);
                        plain[begin..begin + data.len()].copy_from_slice(&data);
                    }
                    _ => {}
                }
                assert_eq!(content(&blocks), plain);
                assert_eq!(content(&copy.0), copy.1);
            }
            assert!(!blocks.read(blocks.len(), &mut [0]));
        }
    }
}
