//! The data folder: the lock against a second process, the file behind the engine, and free space.

use super::Fsync;
use crate::error::{Result, StoreError};
use kubelith_system::files;
use redb::StorageBackend;
use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const DATA_FILE: &str = "store.redb";
/// What a new data file is called until its first sync.
const DRAFT_FILE: &str = "store.redb.unfinished";
const LOCK_FILE: &str = "LOCK";
const ACKED_FILE: &str = "acked";

/// What the engine needs of a disk; tests put a faulty one in its place.
pub trait Disk: Send + Sync + Debug + 'static {
    /// Opens the data file, making it if needed. A new one is there for others, and after a crash, only from its first
    /// sync on: nobody ever finds a part of it.
    fn open(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Bytes that can still be written to the file system.
    fn available(&self) -> io::Result<u64>;

    /// Bytes that the data file takes.
    fn size(&self) -> io::Result<u64>;

    /// Remembers that everything up to `revision` was acknowledged. See [`FolderDisk`] for how far to trust it.
    fn note_acked(&self, revision: u64) -> io::Result<()>;

    /// The highest revision noted.
    fn acked(&self) -> io::Result<u64>;
}

/// How files of the store are opened: what is in them is for nobody else, wherever the operator puts the folder. Secrets
/// are stored in the clear unless encryption is configured.
pub(super) fn private() -> OpenOptions {
    let mut options = files::private();
    options.read(true).write(true);
    options
}

/// A folder on a real file system.
///
/// After a crash the engine cannot tell a commit that was torn (never acknowledged, rightly dropped) from
/// one that was acknowledged and damaged later. So each acknowledged revision is also noted, without a sync,
/// in a small file: it can be behind after a power failure, but never ahead. Data behind the note has lost
/// acknowledged writes, and opening it is refused.
#[derive(Debug)]
pub(super) struct FolderDisk {
    folder: PathBuf,
    sync: Fsync,
    acked: File,
    /// Held until dropped.
    _lock: File,
}

impl FolderDisk {
    /// Locks the folder, making it if needed.
    pub fn lock(folder: &Path) -> Result<FolderDisk> {
        let failed = |what: &str, error: io::Error| StoreError::Unavailable(format!("{what} {folder:?}: {error}"));
        files::make_private_folder(folder).map_err(|error| failed("making the data folder", error))?;
        let open = |name: &str| private().create(true).open(folder.join(name));
        let mut lock = open(LOCK_FILE).map_err(|error| failed("opening the lock of", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = lock.read_to_string(&mut owner);
                let owner = owner.trim();
                let owner = if owner.is_empty() { "unknown" } else { owner };
                return Err(StoreError::Locked(format!("{} (process {owner})", folder.display())));
            }
            Err(TryLockError::Error(error)) => return Err(failed("locking", error)),
        }
        let note = (|| {
            lock.set_len(0)?;
            lock.rewind()?;
            writeln!(lock, "{}", std::process::id())
        })();
        // Only a help for whoever meets the lock: a full disk must not keep a store from being read.
        if let Err(error) = note {
            tracing::debug!(%error, "could not write the process id into the lock file");
        }
        let acked = open(ACKED_FILE).map_err(|error| failed("opening the revision note of", error))?;
        Ok(FolderDisk { folder: folder.to_path_buf(), sync: Fsync::Always, acked, _lock: lock })
    }

    pub fn syncing(self, sync: Fsync) -> FolderDisk {
        FolderDisk { sync, ..self }
    }

    pub fn data_file(folder: &Path) -> PathBuf {
        folder.join(DATA_FILE)
    }

    /// A file to read from, wherever it is.
    pub fn backend(path: &Path) -> io::Result<Box<dyn StorageBackend>> {
        Ok(Box::new(FileBackend { file: File::open(path)?, sync: Fsync::Always, draft: Mutex::default() }))
    }
}

impl Disk for FolderDisk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let (file, draft) = match private().open(FolderDisk::data_file(&self.folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = private().create(true).truncate(true).open(self.folder.join(DRAFT_FILE))?;
                (file, Some(Draft { folder: self.folder.clone() }))
            }
            file => (file?, None),
        };
        Ok(Box::new(FileBackend { file, sync: self.sync, draft: Mutex::new(draft) }))
    }

    fn available(&self) -> io::Result<u64> {
        files::free_space(&self.folder)
    }

    fn size(&self) -> io::Result<u64> {
        // The file grows in steps that are not written at once: count what is there.
        let draft = |_| std::fs::metadata(self.folder.join(DRAFT_FILE));
        Ok(files::size_on_disk(&std::fs::metadata(FolderDisk::data_file(&self.folder)).or_else(draft)?))
    }

    fn note_acked(&self, revision: u64) -> io::Result<()> {
        files::write_all_at(&self.acked, &revision.to_le_bytes(), 0)
    }

    fn acked(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        match files::read_exact_at(&self.acked, &mut bytes, 0) {
            Ok(()) => Ok(u64::from_le_bytes(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// A plain file. The folder's lock guards it, so it takes none of its own.
#[derive(Debug)]
struct FileBackend {
    file: File,
    sync: Fsync,
    /// A new file, until its first sync.
    draft: Mutex<Option<Draft>>,
}

#[derive(Debug)]
struct Draft {
    folder: PathBuf,
}

impl Draft {
    /// Gives the file its name, which must survive a power failure as the content does.
    fn publish(&self, sync: Fsync) -> io::Result<()> {
        std::fs::rename(self.folder.join(DRAFT_FILE), FolderDisk::data_file(&self.folder))?;
        match sync {
            Fsync::Always => files::sync_folder(&self.folder),
            Fsync::Never => Ok(()),
        }
    }
}

impl StorageBackend for FileBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        files::read_exact_at(&self.file, out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.sync == Fsync::Always {
            self.file.sync_data()?;
        }
        let mut draft = self.draft.lock().expect("no panic while the draft is locked");
        if let Some(new) = &*draft {
            new.publish(self.sync)?;
            *draft = None;
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        files::write_all_at(&self.file, data, offset)
    }
}

/// Remembers a failed sync: after one, what the kernel still has of the file cannot be trusted, while a
/// failed write has left the last commit whole.
#[derive(Debug)]
pub(super) struct WatchedBackend {
    pub inner: Box<dyn StorageBackend>,
    pub sync_failed: Arc<AtomicBool>,
    /// While a new file is made nothing is synced: the first commit brings all of it to the disk, and a crash before
    /// that leaves no file (see [`Disk::open`]).
    pub is_new: Arc<AtomicBool>,
}

impl StorageBackend for WatchedBackend {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_new.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.inner.sync_data().inspect_err(|_| self.sync_failed.store(true, Ordering::SeqCst))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }
}
