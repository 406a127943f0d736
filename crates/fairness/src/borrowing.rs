//! Who lends seats to whom. Every period each level's limit is set anew between its bounds, in proportion to
//! the seats it could have used lately.

use crate::integrator::Moments;
use crate::limits::Limits;

/// How much of the past stays in the smoothed demand per period: half is forgotten after 30 periods, 5 minutes.
const SMOOTHING: f64 = 0.977;
/// A level without demand still gets something; and nothing is divided by zero.
const MIN_TARGET: f64 = 0.001;
/// Differences of sums below this are rounding.
const EPSILON: f64 = 1e-7;

/// The seats a level could have used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Demand {
    pub average: f64,
    pub deviation: f64,
    pub high_watermark: u32,
    /// Follows rises at once and falls slowly.
    pub smoothed: f64,
}

impl Demand {
    /// Takes in one more period.
    pub fn update(&mut self, period: Moments) {
        self.high_watermark = period.max.round() as u32;
        if period.seconds <= 0.0 {
            return;
        }
        self.average = period.average;
        self.deviation = period.deviation;
        let envelope = period.average + period.deviation;
        self.smoothed = envelope.max(SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * envelope);
    }
}

/// A level that takes part.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub limits: Limits,
    pub exempt: bool,
    pub demand: Demand,
    pub current: u32,
}

impl Member {
    /// What it certainly gets if it needs it.
    fn floor(&self) -> u32 {
        let needed = self.demand.high_watermark;
        if self.exempt { self.limits.min.max(needed) } else { self.limits.min.max(self.limits.nominal.min(needed)) }
    }

    fn target(&self) -> f64 {
        f64::from(self.floor()).max(self.demand.smoothed)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Adjustment {
    /// The new limits, in the members' order.
    pub current: Vec<u32>,
    pub targets: Vec<f64>,
    /// Seats per seat of demand that a level gets if no bound stops it; 0 if there is nothing to distribute.
    pub fair_fraction: f64,
}

pub fn adjust(members: &[Member]) -> Adjustment {
    let total: u32 = members.iter().map(|m| m.limits.nominal).sum();
    let limited = || members.iter().filter(|m| !m.exempt);
    let taken: u32 = members.iter().filter(|m| m.exempt).map(Member::floor).sum();
    let left = total.saturating_sub(taken);
    let (minimum, floors): (u32, u32) = limited().fold((0, 0), |(a, b), m| (a + m.limits.min, b + m.floor()));
    let mut fair_fraction = 0.0;
    let current = if left <= minimum {
        members.iter().map(|m| if m.exempt { m.floor() } else { m.limits.min }).collect()
    } else if left <= floors {
        // Not enough for what all certainly need: the same part of it for each.
        let part = f64::from(left - minimum) / f64::from(floors - minimum);
        let between = |m: &Member| m.limits.min + (f64::from(m.floor() - m.limits.min) * part).round() as u32;
        members.iter().map(|m| if m.exempt { m.floor() } else { between(m) }).collect()
    } else {
        let classes: Vec<Class> =
            limited().map(|m| Class { low: m.floor().into(), high: m.limits.max.into(), target: m.target() }).collect();
        match allocate(f64::from(total), &classes) {
            Some((seats, fraction)) => {
                fair_fraction = fraction;
                let mut seats = seats.into_iter();
                let mut next = || seats.next().map_or(0, |s| s.round() as u32);
                members.iter().map(|m| if m.exempt { m.floor() } else { next() }).collect()
            }
            // The bounds leave no choice that adds up: all stays as it is.
            None => members.iter().map(|m| if m.exempt { m.floor() } else { m.current }).collect(),
        }
    };
    Adjustment { current, targets: members.iter().map(Member::target).collect(), fair_fraction }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Class {
    low: f64,
    high: f64,
    target: f64,
}

impl Class {
    fn target(&self) -> f64 {
        self.target.max(MIN_TARGET)
    }

    fn at(&self, fraction: f64) -> f64 {
        (fraction * self.target()).clamp(self.low, self.high)
    }
}

/// Finds the fraction at which the classes, each with that fraction of its target or the bound that it hits, get
/// `total` in all. What they get grows with the fraction, straight between the points where a class leaves its lower
/// bound or reaches its upper one; so walk from point to point.
fn allocate(total: f64, classes: &[Class]) -> Option<(Vec<f64>, f64)> {
    let mut sum: f64 = classes.iter().map(|c| c.low).sum();
    let most: f64 = classes.iter().map(|c| c.high).sum();
    if sum - total > EPSILON || total - most > EPSILON {
        return None;
    }
    let mut points: Vec<(f64, f64)> =
        classes.iter().flat_map(|c| [(c.low / c.target(), c.target()), (c.high / c.target(), -c.target())]).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut fraction = points.first()?.0;
    let mut slope = 0.0;
    for (point, change) in points {
        let gain = (point - fraction) * slope;
        if slope > 0.0 && sum + gain >= total {
            fraction += (total - sum) / slope;
            break;
        }
        sum += gain;
        fraction = point;
        slope += change;
    }
    Some((classes.iter().map(|c| c.at(fraction)).collect(), fraction))
}

#[cfg(test)]
#[path = "borrowing_tests.rs"]
mod tests;
