//! Times and durations as the API writes them, and the clock that hands times out.

mod clock;
mod duration;
mod human;
mod parse;

pub use clock::{Clock, SystemClock, TestClock, Turns, turned, unix_time, wall_time};
pub use duration::{Duration, DurationError};
pub use human::{human_duration, short_human_duration};
pub use parse::TimeError;

use std::fmt;

/// A point in time. The API writes most times in whole seconds ([`Time::rfc3339`]) and a few, such as those
/// of leases and events, in microseconds ([`Time::rfc3339_micro`]); always in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Since 1970-01-01T00:00:00Z.
    seconds: i64,
    nanos: u32,
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

impl Time {
    /// The first instant of year 1, which Go calls the zero time and the API writes as null.
    pub const ZERO: Time = Time { seconds: -62_135_596_800, nanos: 0 };
    pub const UNIX_EPOCH: Time = Time { seconds: 0, nanos: 0 };

    pub const fn from_unix(seconds: i64) -> Time {
        Time { seconds, nanos: 0 }
    }

    /// Nanoseconds beyond a second carry over.
    pub const fn from_unix_nanos(seconds: i64, nanos: i64) -> Time {
        let carry = nanos.div_euclid(NANOS_PER_SECOND);
        Time { seconds: seconds.saturating_add(carry), nanos: nanos.rem_euclid(NANOS_PER_SECOND) as u32 }
    }

    /// Seconds since 1970, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub const fn subsec_nanos(self) -> u32 {
        self.nanos
    }

    pub fn is_zero(self) -> bool {
        self == Time::ZERO
    }

    /// What is left of it when written in seconds.
    pub const fn truncate_to_seconds(self) -> Time {
        Time { seconds: self.seconds, nanos: 0 }
    }

    /// What is left of it when written in microseconds.
    pub const fn truncate_to_micros(self) -> Time {
        Time { seconds: self.seconds, nanos: self.nanos / 1000 * 1000 }
    }

    /// The time from `earlier` to this one; beyond 292 years, as much as a duration holds.
    pub fn since(self, earlier: Time) -> Duration {
        let nanos = (i128::from(self.seconds) - i128::from(earlier.seconds)) * i128::from(NANOS_PER_SECOND)
            + i128::from(self.nanos)
            - i128::from(earlier.nanos);
        Duration::from_nanos(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// `2026-01-02T03:04:05Z`.
    pub fn rfc3339(self) -> String {
        self.format(None)
    }

    /// `2026-01-02T03:04:05.000006Z`.
    pub fn rfc3339_micro(self) -> String {
        self.format(Some(self.nanos / 1000))
    }

    fn format(self, micros: Option<u32>) -> String {
        let (days, second) = (self.seconds.div_euclid(SECONDS_PER_DAY), self.seconds.rem_euclid(SECONDS_PER_DAY));
        let (year, month, day) = civil_from_days(days);
        let mut out = String::with_capacity(28);
        if year < 0 {
            out.push('-');
        }
        push_digits(&mut out, year.unsigned_abs(), 4);
        for (separator, number) in
            [('-', month), ('-', day), ('T', second / 3600), (':', second / 60 % 60), (':', second % 60)]
        {
            out.push(separator);
            push_digits(&mut out, number as u64, 2);
        }
        if let Some(micros) = micros {
            out.push('.');
            push_digits(&mut out, u64::from(micros), 6);
        }
        out.push('Z');
        out
    }
}

/// A number with zeros in front up to `width` digits. Times are on the way of every read, `format!` is not.
fn push_digits(out: &mut String, number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let (mut rest, mut start) = (number, digits.len());
    while rest > 0 {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    start = start.min(digits.len() - width);
    out.extend(digits[start..].iter().map(|&b| char::from(b)));
}

/// In whole seconds, as most of the API.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        let nanos = duration.as_nanos();
        let seconds = self.seconds.saturating_add(nanos.div_euclid(NANOS_PER_SECOND));
        Time::from_unix_nanos(seconds, i64::from(self.nanos) + nanos.rem_euclid(NANOS_PER_SECOND))
    }
}

impl std::ops::Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, duration: Duration) -> Time {
        let nanos = duration.as_nanos();
        let seconds = self.seconds.saturating_sub(nanos.div_euclid(NANOS_PER_SECOND));
        Time::from_unix_nanos(seconds, i64::from(self.nanos) - nanos.rem_euclid(NANOS_PER_SECOND))
    }
}

impl From<std::time::SystemTime> for Time {
    fn from(time: std::time::SystemTime) -> Time {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => Time { seconds: after.as_secs() as i64, nanos: after.subsec_nanos() },
            Err(before) => {
                let before = before.duration();
                Time::from_unix_nanos(-(before.as_secs() as i64), -i64::from(before.subsec_nanos()))
            }
        }
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last of its year, in eras of 400 years, which all have the same number of days.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The reverse: year, month, day.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests;
