//! A disk in memory that fails on demand: torn writes at a crash, failing syncs, no space, flipped bits.
//!
//! It keeps what a real one keeps apart: the content that reads see, and the content that survives a power
//! failure. A crash picks any of the writes since the last sync, and any sectors of each. Before the first sync there is
//! nothing that could survive: a new file has no name yet.

mod blocks;

use super::disk::Disk;
use blocks::{BLOCK, Blocks};
use redb::StorageBackend;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What a disk writes as a whole.
const SECTOR: usize = 512;

#[derive(Debug, Clone, Default)]
pub struct FaultyDisk {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<DiskState>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct DiskState {
    content: Blocks,
    durable: Blocks,
    unsynced: Vec<Change>,
    blocks: BTreeSet<u64>,
    capacity: Option<u64>,
    /// Whether `available` tells of the capacity, as a file system does unless others eat the space at once.
    silent_capacity: bool,
    /// The next cut of the file fails for want of space.
    fail_cut: bool,
    acked: u64,
    syncs: u64,
    fail_syncs: bool,
    hold_syncs: bool,
    holding: u64,
    dead: bool,
    /// The machine goes off after so many more changes and syncs.
    fuse: Option<u64>,
    meanwhile: Meanwhile,
}

/// What others do while a sync, or the note of what is acknowledged, is under way.
#[derive(Clone, Default)]
struct Meanwhile(Option<Arc<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

#[derive(Debug)]
enum Change {
    Write { offset: u64, data: Vec<u8> },
    SetLen(u64),
}

impl Change {
    fn apply(&self, content: &mut Blocks) {
        self.apply_sectors(content, &mut || true);
    }

    fn apply_sectors(&self, content: &mut Blocks, keep_sector: &mut dyn FnMut() -> bool) {
        match self {
            Change::SetLen(len) => content.resize(*len as usize),
            Change::Write { offset, data } => {
                for (i, sector) in data.chunks(SECTOR).enumerate() {
                    let at = *offset as usize + i * SECTOR;
                    if at + sector.len() <= content.len() && keep_sector() {
                        content.write(at, sector);
                    }
                }
            }
        }
    }
}

impl FaultyDisk {
    pub fn new() -> FaultyDisk {
        FaultyDisk::default()
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.inner.state.lock().expect("no panic while the disk is locked")
    }

    /// Pulls the plug: this disk answers nothing any more. What survived is on the disk returned, where
    /// `random` says for each write and each sector since the last sync whether it made it.
    pub fn crash(&self, random: &mut dyn FnMut() -> u64) -> FaultyDisk {
        let mut state = self.lock();
        state.dead = true;
        state.hold_syncs = false;
        self.inner.released.notify_all();
        if state.durable.len() == 0 {
            return FaultyDisk::with(Blocks::default(), state.acked);
        }
        let mut survived = state.durable.clone();
        for change in &state.unsynced {
            // Most crashes lose all or keep all of a write; the interesting ones tear it.
            match random() % 4 {
                0 => {}
                1 => change.apply_sectors(&mut survived, &mut || random().is_multiple_of(2)),
                _ => change.apply(&mut survived),
            }
        }
        FaultyDisk::with(survived, state.acked)
    }

    /// The disk after its process was killed: everything written is there, synced or not, unless nothing ever was.
    pub fn kill(&self) -> FaultyDisk {
        let mut state = self.lock();
        state.dead = true;
        state.hold_syncs = false;
        self.inner.released.notify_all();
        let content = if state.durable.len() == 0 { Blocks::default() } else { state.content.clone() };
        FaultyDisk::with(content, state.acked)
    }

    /// A second disk with the same content, to damage.
    pub fn copy(&self) -> FaultyDisk {
        let state = self.lock();
        FaultyDisk::with(state.content.clone(), state.acked)
    }

    fn with(content: Blocks, acked: u64) -> FaultyDisk {
        let state = DiskState { durable: content.clone(), content, acked, ..DiskState::default() };
        FaultyDisk { inner: Arc::new(Inner { state: Mutex::new(state), released: Condvar::new() }) }
    }

    /// Syncs fail, and what they should have written is gone, as Linux has it.
    pub fn fail_syncs(&self) {
        self.lock().fail_syncs = true;
    }

    /// Syncs succeed again, of what is written from now on.
    pub fn heal_syncs(&self) {
        self.lock().fail_syncs = false;
    }

    /// Pulls the plug after so many more changes and syncs. [`FaultyDisk::crash`] or [`FaultyDisk::kill`] tells what is left.
    pub fn set_fuse(&self, operations: u64) {
        self.lock().fuse = Some(operations);
    }

    pub fn clear_fuse(&self) {
        self.lock().fuse = None;
    }

    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// Called whenever the writer waits for the disk, on its thread.
    pub fn meanwhile(&self, others: impl Fn() + Send + Sync + 'static) {
        self.lock().meanwhile = Meanwhile(Some(Arc::new(others)));
    }

    fn pass_time(&self) {
        let meanwhile = self.lock().meanwhile.clone();
        if let Meanwhile(Some(others)) = meanwhile {
            others();
        }
    }

    /// Syncs do not return until released.
    pub fn hold_syncs(&self) {
        self.lock().hold_syncs = true;
    }

    /// Syncs that wait to be released.
    pub fn holding(&self) -> u64 {
        self.lock().holding
    }

    pub fn release_syncs(&self) {
        self.lock().hold_syncs = false;
        self.inner.released.notify_all();
    }

    /// Bounds the disk. `None` is no bound.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.lock().capacity = capacity;
    }

    /// Like `set_capacity`, but the shortage shows only when a write fails.
    pub fn set_silent_capacity(&self, capacity: Option<u64>) {
        let mut state = self.lock();
        state.capacity = capacity;
        state.silent_capacity = true;
    }

    /// The next cut of the file fails for want of space: a file system that copies what it changes needs some for that, too.
    pub fn fail_cut(&self) {
        self.lock().fail_cut = true;
    }

    /// Whether it is yet to come.
    pub fn fails_cut(&self) -> bool {
        self.lock().fail_cut
    }

    pub fn used(&self) -> u64 {
        self.lock().blocks.len() as u64 * BLOCK as u64
    }

    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    pub fn len(&self) -> usize {
        self.lock().content.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Flips one bit.
    pub fn flip(&self, bit: usize) {
        let mut state = self.lock();
        state.content.flip(bit);
        state.durable.flip(bit);
    }

    /// Cuts the file.
    pub fn truncate(&self, len: usize) {
        let mut state = self.lock();
        let state = &mut *state;
        for content in [&mut state.content, &mut state.durable] {
            content.resize(len.min(content.len()));
        }
    }
}

impl DiskState {
    fn alive(&self) -> io::Result<()> {
        if self.dead { Err(io::Error::other("the machine is off")) } else { Ok(()) }
    }

    /// Before whatever would leave a trace.
    fn burn(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.fuse {
            self.dead |= *left == 0;
            *left = left.saturating_sub(1);
        }
        self.alive()
    }
}

impl Disk for FaultyDisk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.lock().alive()?;
        Ok(Box::new(self.clone()))
    }

    fn available(&self) -> io::Result<u64> {
        let state = self.lock();
        Ok(match state.capacity {
            Some(capacity) if !state.silent_capacity => {
                capacity.saturating_sub(state.blocks.len() as u64 * BLOCK as u64)
            }
            _ => u64::MAX,
        })
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.lock().content.len() as u64)
    }

    fn note_acked(&self, revision: u64) -> io::Result<()> {
        self.pass_time();
        let mut state = self.lock();
        state.burn()?;
        state.acked = revision;
        Ok(())
    }

    fn acked(&self) -> io::Result<u64> {
        Ok(self.lock().acked)
    }
}

impl StorageBackend for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        let state = self.lock();
        state.alive()?;
        Ok(state.content.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.lock();
        state.alive()?;
        if state.content.read(offset as usize, out) { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.burn()?;
        if (len as usize) < state.content.len() && std::mem::take(&mut state.fail_cut) {
            return Err(ErrorKind::StorageFull.into());
        }
        state.content.resize(len as usize);
        state.unsynced.push(Change::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.pass_time();
        let mut state = self.lock();
        while state.hold_syncs {
            state.holding += 1;
            state = self.inner.released.wait(state).expect("no panic while the disk is locked");
        }
        state.holding = 0;
        state.burn()?;
        state.syncs += 1;
        let DiskState { durable, unsynced, fail_syncs, .. } = &mut *state;
        let unsynced = std::mem::take(unsynced);
        if *fail_syncs {
            return Err(io::Error::other("sync failed"));
        }
        for change in unsynced {
            change.apply(durable);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.burn()?;
        if data.is_empty() {
            return Ok(());
        }
        let blocks = offset / BLOCK as u64..=(offset + data.len() as u64 - 1) / BLOCK as u64;
        let new = blocks.clone().filter(|block| !state.blocks.contains(block)).count() as u64;
        let used = (state.blocks.len() as u64 + new) * BLOCK as u64;
        if new > 0 && state.capacity.is_some_and(|capacity| used > capacity) {
            return Err(ErrorKind::StorageFull.into());
        }
        state.blocks.extend(blocks);
        let change = Change::Write { offset, data: data.to_vec() };
        change.apply(&mut state.content);
        state.unsynced.push(change);
        Ok(())
    }
}
