//! Literals that are written as strings: whether they are what they are meant to be.

use crate::ast::Literal;
use kubelith_meta::{Duration, Time};

/// The seconds that timestamps have: years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Whether `duration(literal)` has a value.
pub fn is_duration(literal: &Literal) -> bool {
    matches!(literal, Literal::String(text) if Duration::parse(text).is_ok())
}

/// Whether `timestamp(literal)` has a value.
pub fn is_timestamp(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => Time::parse(text).is_ok_and(|t| SECONDS.contains(&t.unix_seconds())),
        Literal::Int(seconds) => SECONDS.contains(seconds),
        _ => false,
    }
}
