//! Work and progress in seats times seconds. Wide enough to count for as long as the hardware lasts, so the
//! meter never has to be wound back.

use crate::Nanos;
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Billionths of a seat-second: one seat for one nanosecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatSeconds(i128);

impl SeatSeconds {
    pub const ZERO: SeatSeconds = SeatSeconds(0);
    pub const MAX: SeatSeconds = SeatSeconds(i128::MAX);

    pub fn of(seats: u32, time: Nanos) -> SeatSeconds {
        SeatSeconds(i128::from(seats) * i128::from(time))
    }

    /// For a rate that is no whole number of seats.
    pub fn at_rate(seats: f64, time: Nanos) -> SeatSeconds {
        SeatSeconds((seats * time as f64).round() as i128)
    }

    /// How long `seats` take for it.
    pub fn time_with(self, seats: u32) -> Nanos {
        u64::try_from(self.0 / i128::from(seats.max(1))).unwrap_or(0)
    }

    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for SeatSeconds {
    type Output = SeatSeconds;

    fn add(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0 + other.0)
    }
}

impl Sub for SeatSeconds {
    type Output = SeatSeconds;

    fn sub(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0 - other.0)
    }
}

impl AddAssign for SeatSeconds {
    fn add_assign(&mut self, other: SeatSeconds) {
        self.0 += other.0;
    }
}

impl SubAssign for SeatSeconds {
    fn sub_assign(&mut self, other: SeatSeconds) {
        self.0 -= other.0;
    }
}

/// With eight decimals, as the reference's dumps have it.
impl fmt::Display for SeatSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.unsigned_abs() / 10;
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:08}ss", parts / 100_000_000, parts % 100_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_prints() {
        let work = SeatSeconds::of(3, 500_000_000);
        assert_eq!(work.to_string(), "1.50000000ss");
        assert_eq!(work.time_with(2), 750_000_000);
        assert_eq!((SeatSeconds::ZERO - SeatSeconds::of(1, 10)).to_string(), "-0.00000001ss");
        assert_eq!(SeatSeconds::at_rate(0.5, 3).to_string(), "0.00000000ss");
        assert_eq!(work.as_f64(), 1.5);
    }
}
