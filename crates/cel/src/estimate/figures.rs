//! Costs and sizes as a least and a greatest number. Sums and products that do not fit are the greatest number there is.

use std::ops::Add;

/// A string's characters, a list's elements, a map's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub min: u64,
    pub max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    pub min: u64,
    pub max: u64,
}

impl Size {
    pub const UNKNOWN: Size = Size { min: 0, max: u64::MAX };

    pub const fn fixed(size: u64) -> Size {
        Size { min: size, max: size }
    }

    /// What a union of sizes begins with; `empty` if it has no parts.
    pub fn nothing(empty: bool) -> Size {
        Size { min: if empty { 0 } else { u64::MAX }, max: 0 }
    }

    pub fn union(self, other: Size) -> Size {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub fn multiply(self, by: Size) -> Size {
        Size { min: self.min.saturating_mul(by.min), max: self.max.saturating_mul(by.max) }
    }

    /// A cost for each element.
    pub fn times(self, each: Cost) -> Cost {
        Cost { min: self.min.saturating_mul(each.min), max: self.max.saturating_mul(each.max) }
    }

    /// A part of a unit for each element.
    pub fn by(self, factor: f64) -> Cost {
        Cost { min: scale(self.min, factor), max: scale(self.max, factor) }
    }
}

impl Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }
}

impl Cost {
    pub const fn fixed(cost: u64) -> Cost {
        Cost { min: cost, max: cost }
    }

    pub fn union(self, other: Cost) -> Cost {
        Cost { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub fn multiply(self, by: Cost) -> Cost {
        Cost { min: self.min.saturating_mul(by.min), max: self.max.saturating_mul(by.max) }
    }

    pub fn by(self, factor: f64) -> Cost {
        Cost { min: scale(self.min, factor), max: scale(self.max, factor) }
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }
}

/// Rounded up.
fn scale(n: u64, factor: f64) -> u64 {
    let product = n as f64;
    if product > 0.0 && factor > 0.0 && product > u64::MAX as f64 / factor {
        return u64::MAX;
    }
    // What is too large becomes the greatest number.
    (product * factor).ceil() as u64
}
