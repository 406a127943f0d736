//! Time zones by name, from a table made of the tz database (`cargo xtask zones` makes it).

use crate::value::{EvalError, Timestamp, days_from_civil};

/// Seconds east of UTC at a time.
pub fn offset(name: &str, seconds: i64) -> Result<i64, EvalError> {
    if name.is_empty() || name == "UTC" || name == "Local" {
        return Ok(0);
    }
    if name.contains("..") || name.starts_with('/') || name.contains('\\') {
        return Err(EvalError::fixed("time: invalid location name"));
    }
    find(name, seconds).ok_or_else(|| failure(name))
}

/// Why there is no such zone. The reference looks for a file, and says what the system says of its name.
fn failure(name: &str) -> EvalError {
    /// The longest name of a file, and the longest path without the folder of zones.
    const MAX_NAME: usize = 255;
    const MAX_PATH: usize = 4095 - "/usr/share/zoneinfo/".len();
    if name.contains('\0') {
        return EvalError::fixed("invalid argument");
    }
    let first = name.split('/').next().unwrap_or(name);
    if name.len() > MAX_PATH || first.len() > MAX_NAME {
        return EvalError::fixed("file name too long");
    }
    let folder = name.trim_end_matches('/');
    let inside = |zone: &[u8]| zone.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"));
    if !folder.is_empty() && has_name(inside) {
        return EvalError::fixed("is a directory");
    }
    if name.match_indices('/').any(|(at, _)| find(&name[..at], 0).is_some()) {
        return EvalError::fixed("not a directory");
    }
    EvalError::new(format!("unknown time zone {name}"))
}

/// How many zones; for each the place and length of its name and the place of its data; names; data. The data of a zone:
/// its first offset, how many changes follow, each with the second (40 bits) and the offset (24 bits) from then on, and the
/// rule for what comes later, as POSIX writes it.
const TABLE: &[u8] = include_bytes!("zones.bin");
const RECORD: usize = 7;

fn has_name(is: impl Fn(&[u8]) -> bool) -> bool {
    let count = TABLE.get(..2).map_or(0, |count| number(count) as usize);
    let names = 2 + count * RECORD;
    (0..count).any(|i| {
        let record = &TABLE[2 + i * RECORD..2 + (i + 1) * RECORD];
        let start = names + number(&record[..2]) as usize;
        TABLE.get(start..start + usize::from(record[2])).is_some_and(&is)
    })
}

fn find(name: &str, seconds: i64) -> Option<i64> {
    let count = number(TABLE.get(..2)?) as usize;
    let names = 2 + count * RECORD;
    let record = |i: usize| TABLE.get(2 + i * RECORD..2 + (i + 1) * RECORD);
    let end = record(count - 1)?;
    let data = names + number(&end[..2]) as usize + usize::from(end[2]);
    let name_of = |i: usize| {
        let record = record(i)?;
        let start = names + number(&record[..2]) as usize;
        TABLE.get(start..start + usize::from(record[2]))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high) / 2;
        match name_of(middle)?.cmp(name.as_bytes()) {
            std::cmp::Ordering::Equal => {
                return at(TABLE.get(data + number(&record(middle)?[3..]) as usize..)?, seconds);
            }
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// A signed number, most significant byte first.
fn number(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |n, b| n << 8 | i64::from(*b))
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len();
    number(bytes) << unused >> unused
}

fn at(zone: &[u8], seconds: i64) -> Option<i64> {
    let (first, count) = (signed(zone.get(..4)?), number(zone.get(4..6)?) as usize);
    let changes = zone.get(6..6 + 8 * count)?;
    let after = changes.chunks(8).rposition(|change| signed(&change[..5]) <= seconds);
    if after == count.checked_sub(1) {
        let length = usize::from(*zone.get(6 + 8 * count)?);
        let rule = std::str::from_utf8(zone.get(7 + 8 * count..7 + 8 * count + length)?).ok()?;
        if let Some(offset) = by_rule(rule, seconds) {
            return Some(offset);
        }
    }
    Some(after.map_or(first, |i| signed(&changes[8 * i + 5..8 * i + 8])))
}

/// `EST5EDT,M3.2.0,M11.1.0`: offsets count westwards.
fn by_rule(rule: &str, seconds: i64) -> Option<i64> {
    let (zones, dates) = rule.split_once(',').map_or((rule, None), |(zones, dates)| (zones, Some(dates)));
    let rest = after_name(zones)?;
    let end = rest.find(|c: char| !matches!(c, '+' | '-' | ':' | '0'..='9')).unwrap_or(rest.len());
    let standard = -clock(&rest[..end])?;
    let Some(dates) = dates else { return Some(standard) };
    let summer = match after_name(&rest[end..])? {
        "" => standard + 3600,
        offset => -clock(offset)?,
    };
    let (start, stop) = dates.split_once(',')?;
    let year = Timestamp::utc(seconds, 0).civil(standard).year;
    let (start, stop) = (day(start, year)? - standard, day(stop, year)? - summer);
    let is_summer = if start < stop { (start..stop).contains(&seconds) } else { !(stop..start).contains(&seconds) };
    Some(if is_summer { summer } else { standard })
}

fn after_name(text: &str) -> Option<&str> {
    match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>').map(|(_, rest)| rest),
        None => Some(text.trim_start_matches(|c: char| c.is_ascii_alphabetic())),
    }
}

/// `h[:mm[:ss]]` with a sign.
fn clock(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = digits.split(':').map(str::parse::<i64>);
    let hours = parts.next()?.ok()?;
    let minutes = parts.next().transpose().ok()?.unwrap_or(0);
    let seconds = parts.next().transpose().ok()?.unwrap_or(0);
    Some(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// The second of a date like `M3.2.0/2` in a year, by the clock of the place: month, week (5 is the last), day of the week.
fn day(rule: &str, year: i64) -> Option<i64> {
    let (date, time) = rule.split_once('/').unwrap_or((rule, "2"));
    let days = match date.strip_prefix('M') {
        Some(date) => {
            let mut parts = date.split('.').map(|p| p.parse::<i64>().ok());
            let (month, week, weekday) = (parts.next()??, parts.next()??, parts.next()??);
            let first = days_from_civil(year, month, 1);
            let next = if month == 12 { days_from_civil(year + 1, 1, 1) } else { days_from_civil(year, month + 1, 1) };
            let mut day = first + (weekday - (first + 4)).rem_euclid(7) + (week - 1) * 7;
            while day >= next {
                day -= 7;
            }
            day
        }
        None => {
            let is_leap = days_from_civil(year + 1, 1, 1) - days_from_civil(year, 1, 1) == 366;
            let number = match date.strip_prefix('J') {
                Some(day) => day.parse::<i64>().ok().map(|d| if is_leap && d >= 60 { d } else { d - 1 })?,
                None => date.parse().ok()?,
            };
            days_from_civil(year, 1, 1) + number
        }
    };
    Some(days * 86_400 + clock(time)?)
}
