//! The average, deviation and bounds of a value that changes in steps, weighted by time.

use crate::{Nanos, SECOND};

#[derive(Debug, Clone, Copy)]
pub struct Integrator {
    last: Nanos,
    value: f64,
    seconds: f64,
    sum: f64,
    squares: f64,
    max: f64,
}

/// What a period was like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    pub seconds: f64,
    pub average: f64,
    pub deviation: f64,
    pub max: f64,
}

impl Integrator {
    pub fn new(now: Nanos) -> Integrator {
        Integrator { last: now, value: 0.0, seconds: 0.0, sum: 0.0, squares: 0.0, max: 0.0 }
    }

    pub fn set(&mut self, now: Nanos, value: f64) {
        self.advance(now);
        self.value = value;
        self.max = self.max.max(value);
    }

    /// Ends the period and begins the next one.
    pub fn reset(&mut self, now: Nanos) -> Moments {
        self.advance(now);
        let (average, deviation) = if self.seconds > 0.0 {
            let average = self.sum / self.seconds;
            // Rounding may leave a difference just below zero.
            let variance = (self.squares / self.seconds - average * average).max(0.0);
            (average, variance.sqrt())
        } else {
            (0.0, 0.0)
        };
        let moments = Moments { seconds: self.seconds, average, deviation, max: self.max };
        *self = Integrator { last: self.last, value: self.value, max: self.value, ..Integrator::new(now) };
        moments
    }

    fn advance(&mut self, now: Nanos) {
        if now <= self.last {
            return;
        }
        let seconds = (now - self.last) as f64 / SECOND as f64;
        self.last = now;
        self.seconds += seconds;
        self.sum += self.value * seconds;
        self.squares += self.value * self.value * seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighs_by_time() {
        let mut value = Integrator::new(0);
        value.set(0, 4.0);
        value.set(3 * SECOND, 0.0);
        let moments = value.reset(4 * SECOND);
        assert_eq!((moments.seconds, moments.average, moments.max), (4.0, 3.0, 4.0));
        assert!((moments.deviation - 3f64.sqrt()).abs() < 1e-9);
        // The next period begins with the value as it is.
        value.set(5 * SECOND, 2.0);
        let moments = value.reset(6 * SECOND);
        assert_eq!((moments.average, moments.deviation, moments.max), (1.0, 1.0, 2.0));
        assert_eq!(value.reset(6 * SECOND).seconds, 0.0);
    }
}
