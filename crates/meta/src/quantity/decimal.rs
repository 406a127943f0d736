//! Decimals of any length, for the amounts that 64 bits cannot hold. Digits are kept one by one: this is the
//! rare case, and nearly everything asked of it is about decimal digits.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Neg;

/// Sums align their terms digit by digit. Beyond this many digits (a gap that only exponents like `1e9999`
/// open) the smaller term is dropped, so that a short text cannot ask for gigabytes.
const MAX_ALIGNED_DIGITS: i64 = 10_000;

/// `±digits * 10^exponent`.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    negative: bool,
    /// 0 to 9, most significant first, without leading or trailing zeros; empty for zero.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    pub fn from_int(value: i64, scale: i32) -> Decimal {
        let digits = value.unsigned_abs().to_string().into_bytes().into_iter().map(|b| b - b'0').collect();
        Decimal::new(value < 0, digits, scale.into())
    }

    pub fn new(negative: bool, digits: Vec<u8>, exponent: i64) -> Decimal {
        let mut d = Decimal { negative, digits, exponent };
        d.normalize();
        d
    }

    fn normalize(&mut self) {
        let leading = self.digits.iter().take_while(|d| **d == 0).count();
        self.digits.drain(..leading);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.exponent += 1;
        }
        if self.digits.is_empty() {
            self.negative = false;
            self.exponent = 0;
        }
    }

    pub fn signum(&self) -> i32 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The power of ten just above the number.
    fn magnitude(&self) -> i64 {
        self.digits.len() as i64 + self.exponent
    }

    /// Compares without signs. Never aligns: numbers of the same magnitude differ in a digit or in length.
    pub fn cmp_magnitude(&self, other: &Decimal) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.magnitude().cmp(&other.magnitude()).then_with(|| self.digits.cmp(&other.digits)),
        }
    }

    pub fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.signum(), other.signum()) {
            (a, b) if a != b => a.cmp(&b),
            (-1, _) => other.cmp_magnitude(self),
            _ => self.cmp_magnitude(other),
        }
    }

    pub fn add(self, other: &Decimal) -> Decimal {
        if self.digits.is_empty() || other.digits.is_empty() {
            return if self.digits.is_empty() { other.clone() } else { self };
        }
        let (large, small) = if self.cmp_magnitude(other) == Ordering::Less { (other, &self) } else { (&self, other) };
        let exponent = large.exponent.min(small.exponent);
        if large.magnitude() - exponent > MAX_ALIGNED_DIGITS.max(large.digits.len() as i64) {
            return large.clone();
        }
        let (a, b) = (large.aligned(exponent), small.aligned(exponent));
        let digits = if large.negative == small.negative { add_digits(&a, &b) } else { subtract_digits(&a, &b) };
        Decimal::new(large.negative, digits, exponent)
    }

    /// Digits, least significant first, with zeros down to `exponent`.
    fn aligned(&self, exponent: i64) -> Vec<u8> {
        let zeros = usize::try_from(self.exponent - exponent).unwrap_or(0);
        let mut digits = vec![0; zeros];
        digits.extend(self.digits.iter().rev());
        digits
    }

    pub fn multiply(&mut self, factor: i64) {
        self.multiply_magnitude(factor.unsigned_abs());
        self.negative ^= factor < 0;
        self.normalize();
    }

    /// Multiplies by a power of ten.
    pub fn shift(&mut self, exponent: i32) {
        if !self.digits.is_empty() {
            self.exponent += i64::from(exponent);
        }
    }

    pub fn multiply_magnitude(&mut self, factor: u64) {
        let mut carry = 0u128;
        for digit in self.digits.iter_mut().rev() {
            let product = u128::from(*digit) * u128::from(factor) + carry;
            *digit = (product % 10) as u8;
            carry = product / 10;
        }
        let head = if carry == 0 { Vec::new() } else { carry.to_string().into_bytes() };
        self.digits.splice(0..0, head.into_iter().map(|b| b - b'0'));
        self.normalize();
    }

    /// Rounds away from zero to a multiple of `10^scale`. False if that changed the number.
    pub fn round_away(&mut self, scale: i32) -> bool {
        let scale = i64::from(scale);
        if self.exponent >= scale || self.digits.is_empty() {
            return true;
        }
        // Trailing zeros are never kept, so what is cut off is never zero.
        let kept = usize::try_from(self.magnitude() - scale).unwrap_or(0);
        self.digits.truncate(kept);
        self.digits.reverse();
        self.digits = add_digits(&self.digits, &[1]);
        self.exponent = scale;
        self.normalize();
        false
    }

    /// Units of `10^scale`, rounded towards positive infinity, in the low 64 bits: what the reference gives
    /// for numbers that do not fit.
    pub fn ceil_wrapping(&self, scale: i32) -> i64 {
        let mut rounded = self.clone();
        if self.negative {
            let kept = usize::try_from(self.magnitude() - i64::from(scale)).unwrap_or(0);
            if self.exponent < i64::from(scale) {
                rounded.digits.truncate(kept);
                rounded.exponent = scale.into();
                rounded.normalize();
            }
        } else {
            rounded.round_away(scale);
        }
        let mut low = rounded.digits.iter().fold(0u64, |n, d| n.wrapping_mul(10).wrapping_add((*d).into()));
        // 10^64 is a multiple of 2^64.
        for _ in 0..(rounded.exponent - i64::from(scale)).clamp(0, 64) {
            low = low.wrapping_mul(10);
        }
        if rounded.negative { (low as i64).wrapping_neg() } else { low as i64 }
    }

    /// Whether the digits, without the exponent, fit into 64 bits.
    pub fn unscaled_fits(&self) -> bool {
        let digits = self.digits.iter().try_fold(0i128, |n, d| {
            let n = n * 10 + i128::from(*d);
            (n <= 1 << 64).then_some(n)
        });
        digits.is_some_and(|n| i64::try_from(if self.negative { -n } else { n }).is_ok())
    }

    /// Divides by 1024 as long as that is exact, and says how often it was. The number must be an integer.
    pub fn take_factors_of_1024(&mut self) -> usize {
        let mut times = 0;
        // A factor of 1024 needs ten factors of two; trailing zeros hold one each, so expand them first.
        // Amounts in this format are capped at 64 bits or sums of such, so there are few.
        let zeros = usize::try_from(self.exponent.min(MAX_ALIGNED_DIGITS)).unwrap_or(0);
        let mut digits = self.digits.clone();
        digits.resize(digits.len() + zeros, 0);
        while let Some(quotient) = divide_exactly(&digits, 1024) {
            digits = quotient;
            times += 1;
        }
        *self = Decimal::new(self.negative, digits, 0);
        times
    }

    /// Moves as many factors of a thousand as there are into the exponent returned, which is negative for
    /// fractions. The number becomes an integer.
    pub fn take_thousands(&mut self) -> i64 {
        let rest = self.exponent.rem_euclid(3);
        let exponent = self.exponent - rest;
        self.exponent = rest;
        exponent
    }

    /// As the reference computes it: the digits at a fixed scale of nano, times 1e-9.
    pub fn approximate_f64(&self) -> f64 {
        let nanos = Decimal { exponent: self.exponent.saturating_add(9), ..self.clone() };
        let digits: String = nanos.digits.iter().map(|d| char::from(b'0' + d)).collect();
        let sign = if self.negative { "-" } else { "" };
        let base: f64 = format!("{sign}{digits}e{}", nanos.exponent).parse().unwrap_or(0.0);
        base * 1e-9
    }
}

impl Neg for Decimal {
    type Output = Decimal;

    fn neg(self) -> Decimal {
        Decimal { negative: !self.negative && !self.digits.is_empty(), ..self }
    }
}

/// Prints an integer with at most two zeros beyond its digits, which is all that canonical forms have.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zeros = usize::try_from(self.exponent.min(MAX_ALIGNED_DIGITS)).unwrap_or(0);
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|d| char::from(b'0' + d)).collect();
        write!(f, "{sign}{digits}{:0<zeros$}", "")
    }
}

/// The sum of two numbers given least significant digit first, most significant first.
fn add_digits(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut sum = Vec::with_capacity(a.len().max(b.len()) + 1);
    let mut carry = 0;
    for i in 0..a.len().max(b.len()) {
        let digit = a.get(i).unwrap_or(&0) + b.get(i).unwrap_or(&0) + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    sum.push(carry);
    sum.reverse();
    sum
}

/// `a - b`, where `a` is not less; digits as in [`add_digits`].
fn subtract_digits(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut difference = Vec::with_capacity(a.len());
    let mut borrow = 0;
    for (i, digit) in a.iter().enumerate() {
        let subtrahend = b.get(i).unwrap_or(&0) + borrow;
        borrow = u8::from(*digit < subtrahend);
        difference.push(digit + 10 * borrow - subtrahend);
    }
    difference.reverse();
    difference
}

fn divide_exactly(digits: &[u8], divisor: u32) -> Option<Vec<u8>> {
    if digits.iter().all(|d| *d == 0) {
        return None;
    }
    let mut remainder = 0u32;
    let mut quotient = Vec::with_capacity(digits.len());
    for digit in digits {
        remainder = remainder * 10 + u32::from(*digit);
        quotient.push((remainder / divisor) as u8);
        remainder %= divisor;
    }
    (remainder == 0).then_some(quotient)
}
