//! Points in time, with the offset they were written with: it shows when one is printed.

use kubelith_meta::Time;

/// The first and the last second that timestamps have: years 1 to 9999.
pub const MIN_SECONDS: i64 = -62_135_596_800;
pub const MAX_SECONDS: i64 = 253_402_300_799;

#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    pub seconds: i64,
    pub nanos: u32,
    /// Seconds east of UTC.
    pub offset: i32,
}

/// The calendar at some offset.
#[derive(Debug, Clone, Copy)]
pub struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    /// From 0.
    pub day_of_year: i64,
    /// From 0, Sunday.
    pub weekday: i64,
    pub second_of_day: i64,
}

impl Timestamp {
    pub const fn utc(seconds: i64, nanos: u32) -> Timestamp {
        Timestamp { seconds, nanos, offset: 0 }
    }

    /// Go's `time.Parse(time.RFC3339, text)`.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let time = Time::parse(text).ok()?;
        Some(Timestamp { seconds: time.unix_seconds(), nanos: time.subsec_nanos(), offset: offset_of(text) })
    }

    pub fn is_zero(self) -> bool {
        self.seconds == MIN_SECONDS && self.nanos == 0
    }

    pub fn in_range(self) -> bool {
        (MIN_SECONDS..=MAX_SECONDS).contains(&self.seconds)
    }

    pub fn key(self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }

    /// The calendar at `offset` seconds east of UTC.
    pub fn civil(self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let (days, second_of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        let day_of_year = days - days_from_civil(year, 1, 1);
        Civil { year, month, day, day_of_year, weekday: (days + 4).rem_euclid(7), second_of_day }
    }

    /// Go's RFC3339Nano.
    pub fn rfc3339(self) -> String {
        let c = self.civil(self.offset.into());
        let mut out = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            c.year,
            c.month,
            c.day,
            c.second_of_day / 3600,
            c.second_of_day / 60 % 60,
            c.second_of_day % 60
        );
        if self.nanos > 0 {
            let fraction = format!(".{:09}", self.nanos);
            out.push_str(fraction.trim_end_matches('0'));
        }
        match self.offset / 60 {
            0 => out.push('Z'),
            minutes => {
                let sign = if minutes < 0 { '-' } else { '+' };
                out.push_str(&format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60));
            }
        }
        out
    }
}

/// The offset at the end of a time that was read: `Z` or `±hh:mm`.
fn offset_of(text: &str) -> i32 {
    let Some(tail) = text.len().checked_sub(6).and_then(|at| text.get(at..)) else { return 0 };
    let sign = match tail.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return 0,
    };
    let number = |range: std::ops::Range<usize>| tail.get(range).and_then(|t| t.parse::<i32>().ok());
    match (number(1..3), number(4..6)) {
        (Some(hours), Some(minutes)) => sign * (hours * 60 + minutes) * 60,
        _ => 0,
    }
}

pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// Years from March on, in eras of 400 years, which all have the same number of days.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Timestamp {}

/// Times without a zone, as Go names their layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Date,
    DateTime,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Layout::Date => "2006-01-02",
            Layout::DateTime => "2006-01-02T15:04:05",
        }
    }

    /// What follows each other: an element of the layout, or what stands between two.
    fn parts(self) -> &'static [&'static str] {
        match self {
            Layout::Date => &["2006", "-", "01", "-", "02"],
            Layout::DateTime => &["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"],
        }
    }
}

impl Timestamp {
    /// Go's `time.Parse(layout, text)`; the error is Go's message.
    pub fn parse_local(text: &str, layout: Layout) -> Result<Timestamp, String> {
        let mut rest = text;
        let mut numbers = [0i64, 1, 1, 0, 0, 0];
        let mut at = 0;
        let quoted = kubelith_meta::text::quote;
        let out_of_range = |what: &str| format!("parsing time {}: {what} out of range", quoted(text));
        for part in layout.parts() {
            let width = part.len();
            let is_number = part.as_bytes()[0].is_ascii_digit();
            let digits = rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
            let taken = match (is_number, *part) {
                (true, "15") if digits == 1 => 1,
                (true, _) if digits == width => width,
                (false, _) if rest.starts_with(part) => width,
                _ => {
                    let (layout, rest) = (layout.text(), quoted(rest));
                    return Err(format!(
                        "parsing time {} as \"{layout}\": cannot parse {rest} as \"{part}\"",
                        quoted(text)
                    ));
                }
            };
            if is_number {
                numbers[at] = rest[..taken].parse().unwrap_or(0);
                match (at, numbers[at]) {
                    (1, month) if !(1..=12).contains(&month) => return Err(out_of_range("month")),
                    (3, hour) if hour > 23 => return Err(out_of_range("hour")),
                    (4, minute) if minute > 59 => return Err(out_of_range("minute")),
                    (5, second) if second > 59 => return Err(out_of_range("second")),
                    _ => at += 1,
                }
            }
            rest = &rest[taken..];
        }
        let mut nanos = 0;
        if layout == Layout::DateTime
            && let Some(fraction) = rest.strip_prefix(['.', ','])
        {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                let nine = format!("{:0<9}", &fraction[..digits.min(9)]);
                nanos = nine.parse().unwrap_or(0);
                rest = &fraction[digits..];
            }
        }
        if !rest.is_empty() {
            return Err(format!("parsing time {}: extra text: {}", quoted(text), quoted(rest)));
        }
        let [year, month, day, hour, minute, second] = numbers;
        let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let length = days_from_civil(next.0, next.1, 1) - days_from_civil(year, month, 1);
        if day < 1 || day > length {
            return Err(out_of_range("day"));
        }
        let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        Ok(Timestamp::utc(seconds, nanos))
    }
}
