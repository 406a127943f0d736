//! A histogram of a ratio over time: each nanosecond is one observation of the value it had. So a scrape shows
//! for how long a level was how full, however short the peaks were.

use crate::Nanos;

#[derive(Debug, Clone)]
pub struct TimedRatio {
    bounds: &'static [f64],
    /// Nanoseconds per bucket, the last one above all bounds.
    spent: Vec<u64>,
    sum: f64,
    numerator: f64,
    denominator: f64,
    bucket: usize,
    last: Nanos,
}

/// What a scrape shows; counts are cumulative.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum: f64,
}

impl TimedRatio {
    /// `bounds` ascend.
    pub fn new(now: Nanos, bounds: &'static [f64]) -> TimedRatio {
        let mut ratio = TimedRatio {
            bounds,
            spent: vec![0; bounds.len() + 1],
            sum: 0.0,
            numerator: 0.0,
            denominator: 1.0,
            bucket: 0,
            last: now,
        };
        ratio.choose_bucket();
        ratio
    }

    pub fn set(&mut self, now: Nanos, numerator: f64) {
        if numerator == self.numerator {
            return;
        }
        self.advance(now);
        self.numerator = numerator;
        self.choose_bucket();
    }

    pub fn set_denominator(&mut self, now: Nanos, denominator: f64) {
        self.advance(now);
        self.denominator = denominator;
        self.choose_bucket();
    }

    pub fn observe(&mut self, now: Nanos) -> Observed {
        self.advance(now);
        let mut count = 0;
        let buckets = self
            .bounds
            .iter()
            .zip(&self.spent)
            .map(|(bound, spent)| {
                count += spent;
                (*bound, count)
            })
            .collect();
        Observed { buckets, count: count + self.spent[self.bounds.len()], sum: self.sum }
    }

    fn advance(&mut self, now: Nanos) {
        if now > self.last {
            let spent = now - self.last;
            self.spent[self.bucket] += spent;
            self.sum += self.numerator / self.denominator * spent as f64;
            self.last = now;
        }
    }

    fn choose_bucket(&mut self) {
        let ratio = self.numerator / self.denominator;
        self.bucket = self.bounds.partition_point(|bound| *bound < ratio);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nanosecond_counts() {
        let mut ratio = TimedRatio::new(0, &[0.0, 0.5, 1.0]);
        ratio.set_denominator(0, 4.0);
        ratio.set(10, 2.0);
        ratio.set(30, 8.0);
        let observed = ratio.observe(35);
        assert_eq!(observed.buckets, [(0.0, 10), (0.5, 30), (1.0, 30)]);
        assert_eq!((observed.count, observed.sum), (35, 20.0 * 0.5 + 5.0 * 2.0));
    }
}
