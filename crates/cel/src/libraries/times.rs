//! The parts of times and durations.

use super::{Run, text, zones};
use crate::value::{Civil, EvalError, Res, Timestamp, Val};

pub fn run(id: &str) -> Option<Run> {
    macro_rules! part {
        ($take:expr) => {
            (Run::Unary(|t| plain(t, $take)), Run::Binary(|t, zone| zoned(t, zone, $take)))
        };
    }
    let (plain, zoned) = match id.strip_suffix("_with_tz").or(id.strip_suffix("_tz")).unwrap_or(id) {
        "timestamp_to_year" => part!(|_, c| c.year),
        "timestamp_to_month" => part!(|_, c| c.month - 1),
        "timestamp_to_day_of_year" => part!(|_, c| c.day_of_year),
        "timestamp_to_day_of_month" => part!(|_, c| c.day - 1),
        "timestamp_to_day_of_month_1_based" => part!(|_, c| c.day),
        "timestamp_to_day_of_week" => part!(|_, c| c.weekday),
        "timestamp_to_hours" => part!(|_, c| c.second_of_day / 3600),
        "timestamp_to_minutes" => part!(|_, c| c.second_of_day / 60 % 60),
        "timestamp_to_seconds" => part!(|_, c| c.second_of_day % 60),
        "timestamp_to_milliseconds" => part!(|t, _| i64::from(t.nanos) / 1_000_000),
        _ => return duration(id),
    };
    Some(if id.ends_with("_tz") { zoned } else { plain })
}

fn duration(id: &str) -> Option<Run> {
    Some(Run::Unary(match id {
        "duration_to_hours" => |d| of_duration(d, 3_600_000_000_000),
        "duration_to_minutes" => |d| of_duration(d, 60_000_000_000),
        "duration_to_seconds" => |d| of_duration(d, 1_000_000_000),
        "duration_to_milliseconds" => |d| of_duration(d, 1_000_000),
        _ => return None,
    }))
}

fn of_duration<'a>(d: &Val<'a>, unit: i64) -> Res<'a> {
    match d {
        Val::Duration(nanos) => Ok(Val::Int(nanos / unit)),
        _ => Err(EvalError::no_overload()),
    }
}

fn plain<'a>(time: &Val<'a>, take: impl Fn(Timestamp, Civil) -> i64) -> Res<'a> {
    match time {
        Val::Timestamp(t) => Ok(Val::Int(take(*t, t.civil(0)))),
        _ => Err(EvalError::no_overload()),
    }
}

fn zoned<'a>(time: &Val<'a>, zone: &Val<'a>, take: impl Fn(Timestamp, Civil) -> i64) -> Res<'a> {
    let Val::Timestamp(t) = time else { return Err(EvalError::no_overload()) };
    let offset = offset(*t, text(zone)?)?;
    Ok(Val::Int(take(*t, t.civil(offset))))
}

/// Seconds east of UTC, of a zone by name or of an offset like `+05:30`.
fn offset(time: Timestamp, zone: &str) -> Result<i64, EvalError> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return zones::offset(zone, time.seconds);
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let offset = match zone.starts_with('-') {
        true => hours.wrapping_mul(60).wrapping_sub(minutes),
        false => hours.wrapping_mul(60).wrapping_add(minutes),
    };
    // Go counts nanoseconds of the offset in 64 bits, and the calendar in fewer.
    let seconds = offset.wrapping_mul(60_000_000_000) / 1_000_000_000;
    Ok(seconds)
}

/// Go's `strconv.Atoi`.
fn number(text: &str) -> Result<i64, EvalError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let quoted = kubelith_meta::text::quote(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(EvalError::new(format!("strconv.Atoi: parsing {quoted}: invalid syntax")));
    }
    text.parse().map_err(|_| EvalError::new(format!("strconv.Atoi: parsing {quoted}: value out of range")))
}
