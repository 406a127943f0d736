//! Durations as Go writes them: `1h2m3.5s`.

use super::parse::quote;
use std::fmt;

/// A span of time in nanoseconds, up to 292 years either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Why a text is no duration, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationError(String);

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DurationError {}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// One more than the largest positive duration: the magnitude of the smallest negative one.
const LIMIT: u64 = 1 << 63;

impl Duration {
    pub const ZERO: Duration = Duration(0);

    pub const fn from_nanos(nanos: i64) -> Duration {
        Duration(nanos)
    }

    pub const fn from_secs(seconds: i64) -> Duration {
        Duration(seconds.saturating_mul(SECOND as i64))
    }

    pub const fn from_millis(millis: i64) -> Duration {
        Duration(millis.saturating_mul(MILLISECOND as i64))
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Whole seconds, towards zero.
    pub const fn as_secs(self) -> i64 {
        self.0 / SECOND as i64
    }

    /// Reads one or more numbers with units: `ns`, `us`, `ms`, `s`, `m`, `h`.
    pub fn parse(text: &str) -> Result<Duration, DurationError> {
        let invalid = || DurationError(format!("time: invalid duration {}", quote(text.as_bytes())));
        let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
        if rest == "0" {
            return Ok(Duration::ZERO);
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total = 0u64;
        while !rest.is_empty() {
            let (number, after) = Number::take(rest).ok_or_else(invalid)?;
            let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            rest = after;
            if name.is_empty() {
                return Err(DurationError(format!("time: missing unit in duration {}", quote(text.as_bytes()))));
            }
            let Some(unit) = unit(name) else {
                let (name, text) = (quote(name.as_bytes()), quote(text.as_bytes()));
                return Err(DurationError(format!("time: unknown unit {name} in duration {text}")));
            };
            let nanos = number.times(unit).ok_or_else(invalid)?;
            total = total.checked_add(nanos).filter(|t| *t <= LIMIT).ok_or_else(invalid)?;
        }
        if text.starts_with('-') {
            return Ok(Duration((total as i64).wrapping_neg()));
        }
        i64::try_from(total).map(Duration).map_err(|_| invalid())
    }
}

fn unit(name: &str) -> Option<u64> {
    match name {
        "ns" => Some(1),
        "us" | "\u{b5}s" | "\u{3bc}s" => Some(MICROSECOND),
        "ms" => Some(MILLISECOND),
        "s" => Some(SECOND),
        "m" => Some(MINUTE),
        "h" => Some(HOUR),
        _ => None,
    }
}

/// `whole + fraction / scale`.
struct Number {
    whole: u64,
    fraction: u64,
    scale: f64,
}

impl Number {
    /// Takes a number off the front; `None` if there is none or it is too large.
    fn take(text: &str) -> Option<(Number, &str)> {
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let (whole_digits, mut rest) = text.split_at(digits(text));
        let whole = whole_digits
            .bytes()
            .try_fold(0u64, |n, b| n.checked_mul(10)?.checked_add((b - b'0').into()).filter(|n| *n <= LIMIT))?;
        let mut number = Number { whole, fraction: 0, scale: 1.0 };
        let mut fraction_digits = "";
        if let Some(after) = rest.strip_prefix('.') {
            (fraction_digits, rest) = after.split_at(digits(after));
            for b in fraction_digits.bytes() {
                // Digits beyond what 63 bits hold do not matter.
                match number.fraction.checked_mul(10).and_then(|f| f.checked_add((b - b'0').into())) {
                    Some(fraction) if fraction <= LIMIT => number.fraction = fraction,
                    _ => break,
                }
                number.scale *= 10.0;
            }
        }
        (!whole_digits.is_empty() || !fraction_digits.is_empty()).then_some((number, rest))
    }

    fn times(&self, unit: u64) -> Option<u64> {
        if self.whole > LIMIT / unit {
            return None;
        }
        let nanos = self.whole * unit + (self.fraction as f64 * (unit as f64 / self.scale)) as u64;
        (nanos <= LIMIT).then_some(nanos)
    }
}

/// `1h2m3.5s`; below a second in the largest unit that gives a whole part: `1.5ms`, `20µs`, `3ns`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if nanos < MICROSECOND {
            return write!(f, "{nanos}ns");
        }
        if nanos < MILLISECOND {
            return write_decimal(f, nanos, MICROSECOND, "µs");
        }
        if nanos < SECOND {
            return write_decimal(f, nanos, MILLISECOND, "ms");
        }
        let (hours, minutes) = (nanos / HOUR, nanos / MINUTE % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write_decimal(f, nanos % MINUTE, SECOND, "s")
    }
}

fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    let (whole, fraction) = (nanos / unit, nanos % unit);
    if fraction == 0 {
        return write!(f, "{whole}{name}");
    }
    let width = unit.ilog10() as usize;
    let fraction = format!("{fraction:0width$}");
    write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'))
}

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Duration {
        Duration(duration.as_nanos().try_into().unwrap_or(i64::MAX))
    }
}

/// A negative duration becomes zero.
impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> std::time::Duration {
        std::time::Duration::from_nanos(duration.0.max(0) as u64)
    }
}
