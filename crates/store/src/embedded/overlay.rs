//! A file that is read but never written: changes stay in memory. What checks a data file must not repair
//! it on the way, for repairing can mean going back to an older commit.

use super::engine::{LoadProgress, ThrottledProgress};
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: u64 = 4096;

#[derive(Debug)]
pub(super) struct Overlay {
    base: Box<dyn StorageBackend>,
    changes: Mutex<Changes>,
    reads: Option<Reads>,
}

/// Tells how much of the file was read, for a check that reads all of it.
struct Reads {
    done: AtomicU64,
    progress: ThrottledProgress,
}

impl std::fmt::Debug for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reads")
    }
}

#[derive(Debug)]
struct Changes {
    len: u64,
    /// What of the base can still be seen: cutting the file hides the rest for good.
    base_len: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    pub fn over(base: Box<dyn StorageBackend>) -> io::Result<Overlay> {
        let len = base.len()?;
        let changes = Changes { len, base_len: len, blocks: BTreeMap::new() };
        Ok(Overlay { base, changes: Mutex::new(changes), reads: None })
    }

    pub fn telling(mut self, progress: Option<LoadProgress>) -> Overlay {
        self.reads = progress.map(|progress| Reads { done: AtomicU64::new(0), progress: progress.into() });
        self
    }

    fn base_block(&self, index: u64, base_len: u64) -> io::Result<Box<[u8]>> {
        let mut block = vec![0; BLOCK as usize].into_boxed_slice();
        let from = index * BLOCK;
        let there = base_len.saturating_sub(from).min(BLOCK) as usize;
        if there > 0 {
            self.base.read(from, &mut block[..there])?;
        }
        Ok(block)
    }
}

/// The parts of `offset..offset + len` by block: index, place in the block, place in the buffer.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let start = (at % BLOCK) as usize;
        let take = (BLOCK as usize - start).min(len - done);
        let part = (at / BLOCK, start..start + take, done..done + take);
        done += take;
        Some(part)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes.lock().expect("no panic while locked").len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes.lock().expect("no panic while locked");
        if let Some(reads) = &self.reads {
            let done = reads.done.fetch_add(out.len() as u64, Ordering::Relaxed);
            // Free space is not read, inner pages are read twice: it is a fair guess, not a promise.
            reads.progress.tell((done as f64 / changes.len.max(1) as f64).min(1.0));
        }
        if offset + out.len() as u64 > changes.len {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let end = offset + out.len() as u64;
        let is_changed = changes.blocks.range(offset / BLOCK..end.div_ceil(BLOCK)).next().is_some();
        if !is_changed && end <= changes.base_len {
            return self.base.read(offset, out);
        }
        for (index, inside, part) in parts(offset, out.len()) {
            match changes.blocks.get(&index) {
                Some(block) => out[part].copy_from_slice(&block[inside]),
                None => out[part].copy_from_slice(&self.base_block(index, changes.base_len)?[inside]),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = self.changes.lock().expect("no panic while locked");
        changes.len = len;
        changes.base_len = changes.base_len.min(len);
        changes.blocks.retain(|index, block| {
            let kept = len.saturating_sub(index * BLOCK).min(BLOCK) as usize;
            block[kept..].fill(0);
            kept > 0
        });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.changes.lock().expect("no panic while locked");
        for (index, inside, part) in parts(offset, data.len()) {
            if !changes.blocks.contains_key(&index) {
                let block = self.base_block(index, changes.base_len)?;
                changes.blocks.insert(index, block);
            }
            if let Some(block) = changes.blocks.get_mut(&index) {
                block[inside].copy_from_slice(&data[part]);
            }
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.base.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::fault::FaultyDisk;

    #[test]
    fn changes_are_seen_and_the_base_is_not_touched() {
        let base = FaultyDisk::new();
        base.set_len(10_000).unwrap();
        base.write(4_000, &[7; 200]).unwrap();
        let overlay = Overlay::over(Box::new(base.clone())).unwrap();
        overlay.write(4_090, &[1; 10]).unwrap();
        overlay.set_len(20_000).unwrap();
        overlay.write(19_990, &[2; 10]).unwrap();
        let mut seen = vec![9; 20_000];
        overlay.read(0, &mut seen).unwrap();
        let mut expected = vec![0; 20_000];
        expected[4_000..4_200].fill(7);
        expected[4_090..4_100].fill(1);
        expected[19_990..].fill(2);
        assert!(seen == expected);
        overlay.set_len(4_095).unwrap();
        overlay.set_len(5_000).unwrap();
        let mut cut = vec![9; 5_000];
        overlay.read(0, &mut cut).unwrap();
        expected[4_095..].fill(0);
        assert!(cut == expected[..5_000]);
        assert!(overlay.read(4_999, &mut [0; 2]).is_err());
        let mut untouched = [0; 10];
        base.read(4_090, &mut untouched).unwrap();
        assert_eq!(untouched, [7; 10]);
        assert_eq!(StorageBackend::len(&base).unwrap(), 10_000);
    }
}
