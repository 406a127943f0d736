//! Files that hold keys and certificates: written whole and private, read as PEM.

use kubelith_system::files;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

pub use kubelith_system::files::{make_private_folder, sync};

/// Who may read a file that is written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Keys and kubeconfigs: the owner alone.
    Private,
    /// Certificates.
    Public,
}

/// Why a file cannot be read, as Go tells it.
pub fn unopened(path: &Path, why: &io::Error) -> String {
    format!("open {}: {}", path.display(), system_error(why))
}

/// An error of the operating system, as Go words it: the same texts, but for their first letter.
pub fn system_error(why: &io::Error) -> String {
    let text = why.to_string();
    let Some((words, _)) = text.split_once(" (os error ") else { return text };
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Replaces `path` by a file with `contents`. Other processes see the old file or the new one, and the mode is
/// right from the first byte on. After a power failure it may be empty, unless [`sync`] was called.
pub fn write(path: &Path, contents: &[u8], access: Access) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = match access {
        Access::Private => files::private(),
        Access::Public => files::public(),
    };
    // A left-over of an earlier crash may have another mode.
    let _ = fs::remove_file(&temporary);
    let mut file = options.write(true).create_new(true).open(&temporary)?;
    file.write_all(contents)?;
    fs::rename(&temporary, path)
}

/// True if there is something in it.
pub fn is_filled(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn errors_of_the_system_are_worded_as_go_does() {
        let missing = fs::read("/nowhere/at/all").unwrap_err();
        assert_eq!(unopened(Path::new("/nowhere/at/all"), &missing), "open /nowhere/at/all: no such file or directory");
        assert_eq!(system_error(&io::Error::other("Odd")), "Odd");
    }

    #[test]
    fn a_private_file_is_private_even_if_it_replaces_a_public_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write(&path, b"a", Access::Public).unwrap();
        write(&path, b"b", Access::Private).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"b");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
