//! RFC 3339 times, as far as credentials carry them.

use std::time::SystemTime;

/// Reads `2006-01-02T15:04:05[.frac](Z|±hh:mm)`; fractions are dropped.
pub fn parse_rfc3339(s: &str) -> Option<SystemTime> {
    let b = s.as_bytes();
    let number = |from: usize, len: usize| -> Option<i64> {
        let digits = b.get(from..from + len)?;
        digits.iter().try_fold(0, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
    };
    let punctuation = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if punctuation.iter().any(|(i, c)| b.get(*i) != Some(c)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !in_range {
        return None;
    }
    let mut rest = &b[19..];
    if let [b'.' | b',', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|d| d.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        rest = &fraction[digits..];
    }
    let offset = match rest {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let at = b.len() - 5;
            let (hours, minutes) = (number(at, 2)?, number(at + 3, 2)?);
            if hours > 24 || minutes >= 60 {
                return None;
            }
            let offset = hours * 3600 + minutes * 60;
            if *sign == b'+' { offset } else { -offset }
        }
        _ => return None,
    };
    let seconds = days_from_epoch(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
    Some(crate::clock::from_unix_seconds(seconds))
}

/// `2006-01-02T15:04:05Z`.
pub fn format_rfc3339(unix_seconds: i64) -> String {
    let (days, time) = (unix_seconds.div_euclid(86400), unix_seconds.rem_euclid(86400));
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, counting years from March so that the leap day is last.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::unix_seconds;

    #[test]
    fn reads_and_writes() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-07-01T01:02:03.456Z", Some(1_782_867_723)),
            ("2026-07-01T03:02:03+02:00", Some(1_782_867_723)),
            ("2023-02-29T00:00:00Z", None),
            ("2023-13-01T00:00:00Z", None),
            ("2023-01-01 00:00:00Z", None),
            ("2023-01-01T00:00:00", None),
            ("2023-01-01T00:00:00.Z", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse_rfc3339(text).map(unix_seconds), want, "{text}");
        }
        assert_eq!(format_rfc3339(951_825_600), "2000-02-29T12:00:00Z");
        assert_eq!(format_rfc3339(1_782_867_723), "2026-07-01T01:02:03Z");
    }
}
