//! Files and folders: modes say who may use them.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Files that are made with these are their owner's alone.
pub fn private() -> OpenOptions {
    with_mode(0o600)
}

/// Files that are made with these may be read by everybody.
pub fn public() -> OpenOptions {
    with_mode(0o644)
}

fn with_mode(mode: u32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(mode);
    options
}

/// Makes a folder that only its owner may enter, with its parents.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(out, offset)
}

pub fn write_all_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(data, offset)
}

/// Brings a file to the disk.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Brings the names of a folder's files to the disk.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Bytes that are taken on the disk: files may have holes.
pub fn size_on_disk(file: &Metadata) -> u64 {
    const BLOCK: u64 = 512;
    file.blocks() * BLOCK
}

/// Bytes that can still be written to the file system of a folder.
pub fn free_space(folder: &Path) -> io::Result<u64> {
    let stats = rustix::fs::statvfs(folder)?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}

pub fn path_to_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Any bytes are a path.
pub fn path_of_bytes(bytes: &[u8]) -> Option<PathBuf> {
    Some(OsStr::from_bytes(bytes).into())
}
