//! The archive that Windows opens by itself: the same files give the same bytes.

use super::tree::Tree;
use flate2::{Compression, Crc, write::DeflateEncoder};
use std::io::Write;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
/// The version of the format that has folders and deflate.
const VERSION: u16 = 20;
const DEFLATE: u16 = 8;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;

/// The files of a tree, `made` being the time of all of them. Folders come with their files, links are left out.
pub fn zip(tree: &Tree, made: u64) -> Result<Vec<u8>, String> {
    let (date, time) = dos(made);
    let (mut out, mut index, mut count) = (Vec::new(), Vec::new(), 0u16);
    for (path, bytes) in tree.files() {
        let failed = |what: &str| format!("{path}: {what}");
        let packed = deflate(bytes).map_err(|error| failed(&error.to_string()))?;
        let number = |size: usize| u32::try_from(size).map_err(|_| failed("too large for an archive"));
        let (start, length) = (number(out.len())?, u16::try_from(path.len()).map_err(|_| failed("too long"))?);
        let mut crc = Crc::new();
        crc.update(bytes);
        // The part that both the file's own head and the index have.
        let mut common = Vec::new();
        for field in [VERSION, FLAGS, DEFLATE, time, date] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc.sum(), number(packed.len())?, number(bytes.len())?] {
            common.extend(field.to_le_bytes());
        }
        common.extend(length.to_le_bytes());
        common.extend(0u16.to_le_bytes());

        out.extend(LOCAL.to_le_bytes());
        out.extend(&common);
        out.extend(path.as_bytes());
        out.extend(&packed);

        index.extend(CENTRAL.to_le_bytes());
        index.extend(VERSION.to_le_bytes());
        index.extend(&common);
        // No comment, the first disk, no attributes.
        index.extend([0; 10]);
        index.extend(start.to_le_bytes());
        index.extend(path.as_bytes());
        count += 1;
    }
    let place = |size: usize| u32::try_from(size).map_err(|_| "too large for an archive".to_owned());
    let (start, size) = (place(out.len())?, place(index.len())?);
    out.extend(index);
    out.extend(END.to_le_bytes());
    out.extend([0; 4]);
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    Ok(out)
}

fn deflate(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = DeflateEncoder::new(Vec::new(), Compression::new(6));
    out.write_all(bytes)?;
    out.finish()
}

/// Date and time as the format has them: years from 1980 on, two seconds to a step.
fn dos(seconds: u64) -> (u16, u16) {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let date = (year.saturating_sub(1980) << 9 | month << 5 | day) as u16;
    let (hour, minute, step) = (second / 3600, second / 60 % 60, second % 60 / 2);
    (date, (hour << 11 | minute << 5 | step) as u16)
}

/// Year, month and day of a day since 1970, by the calendar whose years begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_year - (153 * march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{capture, command};

    #[test]
    fn the_archive_is_what_other_programs_read() {
        let mut tree = Tree::default();
        tree.file("top/kubelith.exe", 0o755, vec![7; 100_000]);
        tree.file("top/share/ü.md", 0o644, "text\n");
        tree.link("top/other", "kubelith.exe");
        let bytes = zip(&tree, 1_700_000_001).unwrap();
        assert_eq!(bytes, zip(&tree, 1_700_000_001).unwrap());
        let file = std::env::temp_dir().join(format!("kubelith-zip-{}.zip", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                      for i in z.infolist(): print(i.filename, i.file_size, *i.date_time, sum(z.read(i)))";
        let listing = capture(command("python3").env("PYTHONIOENCODING", "utf-8").args(["-c", script]).arg(&file));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(
            listing.unwrap(),
            "top/kubelith.exe 100000 2023 11 14 22 13 20 700000\ntop/share/ü.md 5 2023 11 14 22 13 20 463\n"
        );
    }

    #[test]
    fn days_of_the_calendar() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_675, (2023, 11, 14)),
            (20_453, (2025, 12, 31)),
        ] {
            assert_eq!(civil(days), date);
        }
    }
}
