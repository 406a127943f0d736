//! Schedules of cron jobs: five fields, or a word.

struct Field {
    low: u32,
    high: u32,
    names: &'static [&'static str],
    /// The number of the first name.
    first: u32,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Field; 5] = [
    Field { low: 0, high: 59, names: &[], first: 0 },
    Field { low: 0, high: 23, names: &[], first: 0 },
    Field { low: 1, high: 31, names: &[], first: 0 },
    Field { low: 1, high: 12, names: &MONTHS, first: 1 },
    Field { low: 0, high: 6, names: &DAYS, first: 0 },
];

/// Why a schedule is none, in the words of the parser that the reference uses.
pub fn parse(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        let (zone, after) = rest.split_once(' ').ok_or("internal parser panic, schedule is invalid")?;
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if !is_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
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

fn descriptor(word: &str, whole: &str) -> Result<(), String> {
    match word {
        "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => Ok(()),
        _ => match word.strip_prefix("every ") {
            Some(period) => duration(period).map_err(|why| format!("failed to parse duration {whole}: {why}")),
            None => Err(format!("unrecognized descriptor: {whole}")),
        },
    }
}

/// `1h30m`, as Go writes durations.
fn duration(text: &str) -> Result<(), String> {
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

fn integer(text: &str) -> Result<u32, String> {
    let number: i64 = text.parse().map_err(|_| {
        let quoted = kubelith_meta::text::quote(text);
        format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax")
    })?;
    u32::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// Whether a time zone is known: the machine's database says so, or the zone is one that every program knows.
pub fn is_zone(name: &str) -> bool {
    if matches!(name, "" | "UTC") {
        return true;
    }
    const PLACES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"];
    let mut databases = PLACES.iter().map(std::path::Path::new).filter(|place| place.is_dir()).peekable();
    if databases.peek().is_none() {
        // Without a database nothing can be said against a name of the right form.
        return name.split('/').all(|part| part.starts_with(|c: char| c.is_ascii_uppercase()));
    }
    databases.any(|place| place.join(name).is_file())
}
