//! A file that is put aside when it is full. Names and rules are those of the reference's log library: `audit.log`
//! becomes `audit-2026-11-15T08-30-00.000.log`, and with compression `….log.gz`.

use flate2::Compression;
use flate2::write::GzEncoder;
use kubelith_meta::time::{Clock, SystemClock, Time};
use kubelith_system::files;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes at which a file is put aside.
    pub max_bytes: u64,
    /// Files older than this many days are removed; 0: none.
    pub max_age_days: u64,
    /// Files to keep; 0: all.
    pub max_backups: usize,
    pub compress: bool,
}

pub struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    written: u64,
}

impl RotatingFile {
    /// Goes on with the file that is there, or makes one that only we may read.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<RotatingFile> {
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            fs::create_dir_all(dir)?;
        }
        let file = append_to(path)?;
        let written = file.metadata()?.len();
        Ok(RotatingFile { path: path.to_owned(), rotation, file, written })
    }

    /// Writes a line whole into one file.
    pub fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let (length, max) = (line.len() as u64, self.rotation.max_bytes);
        if length > max {
            let why = format!("write length {length} exceeds maximum file size {max}");
            return Err(io::Error::other(why));
        }
        if self.written + length > max {
            self.rotate(SystemClock.now())?;
        }
        self.file.write_all(line)?;
        self.written += length;
        Ok(())
    }

    fn rotate(&mut self, now: Time) -> io::Result<()> {
        fs::rename(&self.path, self.backup_name(now))?;
        self.file = append_to(&self.path)?;
        self.written = 0;
        let (path, rotation) = (self.path.clone(), self.rotation);
        // Compressing a hundred megabytes must not hold up the request that filled the file.
        std::thread::spawn(move || {
            if let Err(why) = clean_up(&path, rotation, now) {
                tracing::error!(err = %why, "old audit logs were not cleaned up");
            }
        });
        Ok(())
    }

    fn backup_name(&self, now: Time) -> PathBuf {
        let (stem, extension) = parts(&self.path);
        // 2026-11-15T08:30:00.123456Z with dashes and milliseconds.
        let stamp: String = now.rfc3339_micro()[..23].replace(':', "-");
        self.path.with_file_name(format!("{stem}-{stamp}{extension}"))
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    files::private().append(true).create(true).open(path)
}

/// `audit` and `.log`.
fn parts(path: &Path) -> (String, String) {
    let text = |s: Option<&std::ffi::OsStr>| s.unwrap_or_default().to_string_lossy().into_owned();
    let extension = text(path.extension());
    let extension = if extension.is_empty() { extension } else { format!(".{extension}") };
    (text(path.file_stem()), extension)
}

/// Removes what is too old or too much, and compresses what is left.
fn clean_up(path: &Path, rotation: Rotation, now: Time) -> io::Result<()> {
    let (stem, extension) = parts(path);
    let prefix = format!("{stem}-");
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut backups: Vec<(String, PathBuf, Option<Time>)> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stamp) = name.strip_prefix(&prefix) else { continue };
        let Some(stamp) = stamp.strip_suffix(".gz").unwrap_or(stamp).strip_suffix(&extension) else { continue };
        let Some(time) = time_of(stamp) else { continue };
        backups.push((stamp.to_owned(), path, Some(time)));
    }
    // Newest first.
    backups.sort_by(|a, b| b.0.cmp(&a.0));
    let age_limit = now.unix_seconds() - i64::try_from(rotation.max_age_days * 86_400).unwrap_or(i64::MAX);
    for (i, (_, path, time)) in backups.iter().enumerate() {
        let too_many = rotation.max_backups > 0 && i >= rotation.max_backups;
        let too_old = rotation.max_age_days > 0 && time.is_some_and(|t| t.unix_seconds() < age_limit);
        if too_many || too_old {
            fs::remove_file(path)?;
        } else if rotation.compress && path.extension().is_none_or(|e| e != "gz") {
            compress(path)?;
        }
    }
    Ok(())
}

/// Reads `2026-11-15T08-30-00.000`.
fn time_of(stamp: &str) -> Option<Time> {
    let (date, time) = stamp.split_once('T')?;
    Time::parse(&format!("{date}T{}Z", time.replace('-', ":"))).ok()
}

fn compress(path: &Path) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    let target = PathBuf::from(name);
    let out = files::private().write(true).create(true).truncate(true).open(&target)?;
    let mut encoder = GzEncoder::new(out, Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn full_files_are_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let rotation = Rotation { max_bytes: 10, max_age_days: 0, max_backups: 0, compress: false };
        let mut file = RotatingFile::open(&path, rotation).unwrap();
        file.write(b"12345\n").unwrap();
        assert!(file.write(b"too long for a file\n").is_err());
        file.write(b"678\n").unwrap();
        assert_eq!(names(dir.path()), ["audit.log"]);
        file.write(b"9\n").unwrap();
        let found = names(dir.path());
        assert_eq!((found.len(), found[1].as_str()), (2, "audit.log"));
        assert!(found[0].starts_with("audit-2") && found[0].ends_with(".log"), "{found:?}");
        assert_eq!(fs::read(dir.path().join(&found[0])).unwrap(), b"12345\n678\n");
        let mut again = RotatingFile::open(&path, rotation).unwrap();
        again.write(b"0\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"9\n0\n");
    }

    #[test]
    fn old_files_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        for stamp in ["2026-01-01T00-00-00.000", "2026-01-09T00-00-00.000", "2026-01-10T00-00-00.000", "no-date"] {
            fs::write(dir.path().join(format!("audit-{stamp}.log")), stamp).unwrap();
        }
        let now = Time::parse("2026-01-10T01:00:00Z").unwrap();
        let rotation = Rotation { max_bytes: 10, max_age_days: 5, max_backups: 0, compress: false };
        clean_up(&path, rotation, now).unwrap();
        assert_eq!(
            names(dir.path()),
            ["audit-2026-01-09T00-00-00.000.log", "audit-2026-01-10T00-00-00.000.log", "audit-no-date.log"]
        );
        clean_up(&path, Rotation { max_backups: 1, compress: true, ..rotation }, now).unwrap();
        assert_eq!(names(dir.path()), ["audit-2026-01-10T00-00-00.000.log.gz", "audit-no-date.log"]);
    }
}
