//! Schedules of cron jobs: five fields, or a word.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

pub struct Field {
    low: u32,
    high: u32,
    names: &'static [&'static str],
    /// The number of the first name.
    first: u32,
}

pub const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

pub const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

pub const FIELDS: [Field; 5] = [
    Field { low: 0, high: 59, names: &[], first: 0 },
    Field { low: 0, high: 23, names: &[], first: 0 },
    Field { low: 1, high: 31, names: &[], first: 0 },
    Field { low: 1, high: 12, names: &MONTHS, first: 1 },
    Field { low: 0, high: 6, names: &DAYS, first: 0 },
];

/// The parser of the reference looks for a space that is not there.
pub const PANIC: &str = "invalid schedule format: runtime error: slice bounds out of range [:-1]";

/// Why a schedule is none, in the words of the parser that the reference uses.
pub fn parse(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        let (zone, after) = rest.split_once(' ').ok_or(PANIC)?;
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if zone != "Local" {
            time_zone(zone).map_err(|why| format!("provided bad location {zone}: {why}"))?;
        }
        rest = after.trim();
    }
    if let Some(word) = rest.strip_prefix('@') {
        return descriptor(word, rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let shown: Vec<&str> = fields.clone();
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), shown.join(" ")));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(text, field)| field.parse(text))
}

pub fn descriptor(word: &str, whole: &str) -> Result<(), String> {
    match word {
        "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => Ok(()),
        _ => match word.strip_prefix("every ") {
            Some(period) => duration(period).map_err(|why| format!("failed to parse duration {whole}: {why}")),
            None => Err(format!("unrecognized descriptor: {whole}")),
        },
    }
}

/// `1h30m`, as Go writes durations.
pub fn duration(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {}", kubelith_meta::text::quote(text));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if digits == 0 || rest[..digits].bytes().all(|b| b == b'.') {
            return Err(invalid());
        }
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        if unit == 0 {
            return Err(format!("time: missing unit in duration {}", kubelith_meta::text::quote(text)));
        }
        if !matches!(&rest[..unit], "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            let quote = kubelith_meta::text::quote;
            return Err(format!("time: unknown unit {} in duration {}", quote(&rest[..unit]), quote(text)));
        }
        rest = &rest[unit..];
    }
    Ok(())
}

impl Field {
    fn parse(&self, text: &str) -> Result<(), String> {
        text.split(',').filter(|part| !part.is_empty()).try_for_each(|part| self.range(part))
    }

    fn range(&self, text: &str) -> Result<(), String> {
        let parts: Vec<&str> = text.split('/').collect();
        let ends: Vec<&str> = parts[0].split('-').collect();
        let single = ends.len() == 1;
        let (start, mut end) = if matches!(ends[0], "*" | "?") {
            (self.low, self.high)
        } else {
            let start = self.number(ends[0])?;
            match ends.len() {
                1 => (start, start),
                2 => (start, self.number(ends[1])?),
                _ => return Err(format!("too many hyphens: {text}")),
            }
        };
        let step = match parts.len() {
            1 => 1,
            2 => {
                let step = integer(parts[1])?;
                if single {
                    end = self.high;
                }
                step
            }
            _ => return Err(format!("too many slashes: {text}")),
        };
        if start < self.low {
            return Err(format!("beginning of range ({start}) below minimum ({}): {text}", self.low));
        }
        if end > self.high {
            return Err(format!("end of range ({end}) above maximum ({}): {text}", self.high));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
        }
        if step == 0 {
            return Err(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_lowercase();
        match self.names.iter().position(|name| *name == lower) {
            Some(i) => Ok(self.first + i as u32),
            None => integer(text),
        }
    }
}

pub fn integer(text: &str) -> Result<u32, String> {
    let number: i64 = text.parse().map_err(|_| {
        let quoted = kubelith_meta::text::quote(text);
        format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax")
    })?;
    u32::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// What is wrong with the name of a time zone, in the words of Go, which looks for a file of that name.
pub fn time_zone(name: &str) -> Result<(), String> {
    const PLACES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"];
    if matches!(name, "" | "UTC") {
        return Ok(());
    }
    if name.starts_with(['/', '\\']) || name.contains('\\') || name.split('/').any(|part| part == "..") {
        return Err("time: invalid location name".into());
    }
    let unknown = || format!("unknown time zone {name}");
    let databases: Vec<&Path> = PLACES.iter().map(Path::new).filter(|place| place.is_dir()).collect();
    if databases.is_empty() {
        // Without a database nothing can be said against a name of the right form.
        let is_proper = name.split('/').all(|part| part.starts_with(|c: char| c.is_ascii_uppercase()));
        return if is_proper { Ok(()) } else { Err(unknown()) };
    }
    let mut problem = None;
    for place in databases {
        match check_zone_file(&place.join(name)) {
            Ok(()) => return Ok(()),
            Err(why) => problem = problem.or(why),
        }
    }
    Err(problem.map_or_else(unknown, str::to_owned))
}

/// Nothing is said of a file that is not there.
pub fn check_zone_file(path: &Path) -> Result<(), Option<&'static str>> {
    const MAGIC: [u8; 4] = *b"TZif";
    let why = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => None,
        ErrorKind::NotADirectory => Some("not a directory"),
        ErrorKind::IsADirectory => Some("is a directory"),
        ErrorKind::PermissionDenied => Some("permission denied"),
        ErrorKind::InvalidFilename => Some("file name too long"),
        _ => Some("malformed time zone information"),
    };
    let mut start = [0; MAGIC.len()];
    let mut file = File::open(path).map_err(why)?;
    file.read_exact(&mut start).map_err(why)?;
    if start == MAGIC { Ok(()) } else { Err(Some("malformed time zone information")) }
}
