//! The companion: a small program that stands where an etcd is expected.
//!
//! Tools that start an API server for tests start an etcd first and hand its address over. The companion answers the
//! questions that such tools ask (`--help`, `/health`, `/version`), and tells a server of ours that looks for it
//! ([`Announcement`]) to keep its objects itself, in the data folder that the tool made. It keeps no objects and speaks no
//! protocol of etcd's; any other client is told so. It has no runtime, and no crate of ours but `system`: it is up in a millisecond,
//! and a signal ends it as it ends any program.

pub mod flags;
pub mod serve;

use kubelith_system::files;
use std::path::PathBuf;

/// Where the announcement is. An etcd has nothing there.
pub const PATH: &str = "/kubelith/companion";

/// The first line of an announcement.
const GREETING: &str = "kubelith companion";

/// Whether what was acknowledged is still there after a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    Always,
    /// `--unsafe-no-fsync`: only as long as the machine runs.
    Never,
}

/// What a server of ours is told.
///
/// As text: a line of greeting, a line `fsync yes` or `fsync no`, and all the rest is the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Where the server keeps its objects.
    pub folder: PathBuf,
    pub sync: Fsync,
}

impl Announcement {
    pub fn to_bytes(&self) -> Vec<u8> {
        let sync = match self.sync {
            Fsync::Always => "yes",
            Fsync::Never => "no",
        };
        let mut text = format!("{GREETING}\nfsync {sync}\n").into_bytes();
        text.extend(files::path_to_bytes(&self.folder));
        text
    }

    pub fn from_bytes(text: &[u8]) -> Option<Announcement> {
        let text = text.strip_prefix(GREETING.as_bytes())?.strip_prefix(b"\nfsync ")?;
        let (sync, folder) = match text.strip_prefix(b"yes\n") {
            Some(folder) => (Fsync::Always, folder),
            None => (Fsync::Never, text.strip_prefix(b"no\n")?),
        };
        let folder = files::path_of_bytes(folder)?;
        folder.is_absolute().then_some(Announcement { folder, sync })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_read_as_they_were_written() {
        for name in ["a", "with\nline and \"quotes\"", "ü"] {
            let folder = std::env::temp_dir().join(name);
            for sync in [Fsync::Always, Fsync::Never] {
                let announcement = Announcement { folder: folder.clone(), sync };
                assert_eq!(Announcement::from_bytes(&announcement.to_bytes()), Some(announcement));
            }
        }
        for other in
            ["", "404 page not found\n", "kubelith companion\nfsync maybe\n/tmp", "kubelith companion\nfsync no\ntmp"]
        {
            assert_eq!(Announcement::from_bytes(other.as_bytes()), None, "{other:?}");
        }
    }
}
