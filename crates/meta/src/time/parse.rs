//! Reading times as Go's `time.Parse` does, which is a little more lenient than RFC 3339: hours of one digit, a
//! comma before the fraction, offsets up to 24:60.

use super::{SECONDS_PER_DAY, Time, days_from_civil};
use std::fmt;

const SECONDS_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICROS_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Why a text is no time, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeError(String);

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimeError {}

impl Time {
    /// Reads a time; a fraction of a second may be there or not.
    pub fn parse(text: &str) -> Result<Time, TimeError> {
        Parser { text, rest: text.as_bytes(), layout: SECONDS_LAYOUT }.time()
    }

    /// Reads a time with exactly six digits after the second.
    pub fn parse_micro(text: &str) -> Result<Time, TimeError> {
        Parser { text, rest: text.as_bytes(), layout: MICROS_LAYOUT }.time()
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a [u8],
    layout: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Width {
    Two,
    OneOrTwo,
}

impl<'a> Parser<'a> {
    fn time(mut self) -> Result<Time, TimeError> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.number("01", Width::Two)?;
        if !(1..=12).contains(&month) {
            return Err(self.out_of_range("month"));
        }
        self.literal("-")?;
        let day = self.number("02", Width::Two)?;
        self.literal("T")?;
        let hour = self.number("15", Width::OneOrTwo)?;
        if hour > 23 {
            return Err(self.out_of_range("hour"));
        }
        self.literal(":")?;
        let minute = self.number("04", Width::Two)?;
        if minute > 59 {
            return Err(self.out_of_range("minute"));
        }
        self.literal(":")?;
        let second = self.number("05", Width::Two)?;
        if second > 59 {
            return Err(self.out_of_range("second"));
        }
        let nanos = if self.layout == MICROS_LAYOUT { self.micros()? } else { self.optional_fraction() };
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(self.error(&format!(": extra text: {}", quote(self.rest))));
        }
        if day < 1 || day > days_in_month(year, month) {
            return Err(self.out_of_range("day"));
        }
        let seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        Ok(Time::from_unix_nanos(seconds - offset, nanos))
    }

    fn digit(&self, i: usize) -> Option<i64> {
        self.rest.get(i).filter(|b| b.is_ascii_digit()).map(|b| i64::from(b - b'0'))
    }

    fn year(&mut self) -> Result<i64, TimeError> {
        let mut year = 0;
        for i in 0..4 {
            let Some(digit) = self.digit(i) else {
                return Err(self.cannot_parse(self.rest, "2006"));
            };
            year = year * 10 + digit;
        }
        self.rest = &self.rest[4..];
        Ok(year)
    }

    fn number(&mut self, element: &'static str, width: Width) -> Result<i64, TimeError> {
        match (self.digit(0), self.digit(1)) {
            (Some(tens), Some(ones)) => {
                self.rest = &self.rest[2..];
                Ok(tens * 10 + ones)
            }
            (Some(one), None) if width == Width::OneOrTwo => {
                self.rest = &self.rest[1..];
                Ok(one)
            }
            _ => Err(self.cannot_parse(self.rest, element)),
        }
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), TimeError> {
        match self.rest.strip_prefix(literal.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.cannot_parse(self.rest, literal)),
        }
    }

    /// A point or comma with digits, of which nine count.
    fn optional_fraction(&mut self) -> i64 {
        if !matches!(self.rest.first(), Some(b'.' | b',')) || self.digit(1).is_none() {
            return 0;
        }
        let digits = self.rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let nanos = (0..9).fold(0, |n, i| n * 10 + if i < digits { self.digit(i + 1).unwrap_or(0) } else { 0 });
        self.rest = &self.rest[1 + digits..];
        nanos
    }

    /// A point or comma with six digits, the first of which may be a sign: Go reads an integer there.
    fn micros(&mut self) -> Result<i64, TimeError> {
        const ELEMENT: &str = ".000000";
        let Some((field, rest)) = self.rest.split_at_checked(ELEMENT.len()) else {
            return Err(self.cannot_parse(self.rest, ELEMENT));
        };
        let number = std::str::from_utf8(&field[1..]).ok().and_then(|s| s.parse::<i64>().ok());
        match number {
            Some(micros) if matches!(field[0], b'.' | b',') => {
                if micros < 0 {
                    return Err(self.out_of_range("fractional second"));
                }
                self.rest = rest;
                Ok(micros * 1000)
            }
            _ => Err(self.cannot_parse(self.rest, ELEMENT)),
        }
    }

    /// `Z`, or `+hh:mm` as seconds.
    fn offset(&mut self) -> Result<i64, TimeError> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix(b"Z") {
            self.rest = rest;
            return Ok(0);
        }
        let whole = self.rest;
        if whole.len() < 6 || whole[3] != b':' {
            return Err(self.cannot_parse(whole, ELEMENT));
        }
        let two = |i: usize| Some(self.digit(i)? * 10 + self.digit(i + 1)?);
        let (hours, minutes) = (two(1), two(4));
        let after = &whole[6..];
        if hours.is_some_and(|h| h > 24) {
            self.rest = after;
            return Err(self.out_of_range("time zone offset hour"));
        }
        if hours.is_some() && minutes.is_some_and(|m| m > 60) {
            self.rest = after;
            return Err(self.out_of_range("time zone offset minute"));
        }
        let (Some(hours), Some(minutes)) = (hours, minutes) else {
            return Err(self.cannot_parse(whole, ELEMENT));
        };
        let sign = match whole[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return Err(self.cannot_parse(whole, ELEMENT)),
        };
        self.rest = after;
        Ok(sign * (hours * 60 + minutes) * 60)
    }

    fn cannot_parse(&self, value: &[u8], element: &str) -> TimeError {
        let layout = self.layout;
        self.error(&format!(" as \"{layout}\": cannot parse {} as \"{element}\"", quote(value)))
    }

    fn out_of_range(&self, what: &str) -> TimeError {
        self.error(&format!(": {what} out of range"))
    }

    fn error(&self, message: &str) -> TimeError {
        TimeError(format!("parsing time {}{message}", quote(self.text.as_bytes())))
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Quotes as Go's package time does: bytes outside of ASCII as `\xff`.
pub(super) fn quote(text: &[u8]) -> String {
    let mut out = String::from('"');
    for b in text {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*b));
            }
            0x20..0x80 => out.push(char::from(*b)),
            _ => out.push_str(&format!("\\x{b:02x}")),
        }
    }
    out.push('"');
    out
}
