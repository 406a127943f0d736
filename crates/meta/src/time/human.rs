//! Durations for people, as in the AGE column of a table.

use super::{Duration, Time};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

impl Time {
    /// How old something from this time is.
    pub fn age(self, now: Time) -> String {
        human_duration(now.since(self))
    }
}

/// Two or three significant figures: `90s`, `5m10s`, `3h`, `2d5h`, `400d`, `3y20d`. A clock that is a second
/// ahead is forgiven.
pub fn human_duration(duration: Duration) -> String {
    let s = duration.as_secs();
    match s {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if s < 2 * MINUTE => format!("{s}s"),
        _ if s < 10 * MINUTE => pair(s / MINUTE, "m", s % MINUTE, "s"),
        _ if s < 3 * HOUR => format!("{}m", s / MINUTE),
        _ if s < 8 * HOUR => pair(s / HOUR, "h", s / MINUTE % 60, "m"),
        _ if s < 2 * DAY => format!("{}h", s / HOUR),
        _ if s < 8 * DAY => pair(s / DAY, "d", s / HOUR % 24, "h"),
        _ if s < 2 * YEAR => format!("{}d", s / DAY),
        _ if s < 8 * YEAR => pair(s / YEAR, "y", s / DAY % 365, "d"),
        _ => format!("{}y", s / YEAR),
    }
}

/// One unit only: `5m`, `3h`, `2d`, `1y`.
pub fn short_human_duration(duration: Duration) -> String {
    let s = duration.as_secs();
    match s {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if s < MINUTE => format!("{s}s"),
        _ if s < HOUR => format!("{}m", s / MINUTE),
        _ if s < DAY => format!("{}h", s / HOUR),
        _ if s < YEAR => format!("{}d", s / DAY),
        _ => format!("{}y", s / YEAR),
    }
}

fn pair(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
}
