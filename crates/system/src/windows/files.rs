//! Files and folders. There are no modes: who may use a file is what its folder hands down to it (the folder's access
//! control list). Below a user's profile that is the user, the system and administrators.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::FileExt;
use std::path::{Path, PathBuf};

/// Nothing is private by itself: see above.
pub fn private() -> OpenOptions {
    OpenOptions::new()
}

pub fn public() -> OpenOptions {
    OpenOptions::new()
}

/// Makes a folder, with its parents.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

/// The place of the file that reads and writes without an offset go on from is moved.
pub fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match file.seek_read(out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                out = &mut out[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub fn write_all_at(file: &File, mut data: &[u8], mut offset: u64) -> io::Result<()> {
    while !data.is_empty() {
        match file.seek_write(data, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                data = &data[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Brings a file to the disk: only who may write to it can do that.
pub fn sync(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.sync_all()
}

/// Folders cannot be synced; NTFS keeps a journal of names.
pub fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

pub fn size_on_disk(file: &Metadata) -> u64 {
    file.len()
}

/// Bytes that can still be written to the file system of a folder.
pub fn free_space(folder: &Path) -> io::Result<u64> {
    fs4::available_space(folder)
}

pub fn path_to_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

/// Paths that are no text are none.
pub fn path_of_bytes(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}
