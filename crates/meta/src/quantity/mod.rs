//! Amounts of resources: `500m`, `1Gi`, `129e6`. Exact decimals with the reference's parsing, rounding,
//! canonical form, and its memory of how an amount was written.
//!
//! `Display` is what the API answers, in JSON as in protobuf: the text as it was sent if parsing found it
//! plain enough (`1.` and `0001Mi` are), else the canonical form (`1024Mi` becomes `1Gi`). Arithmetic
//! forgets the text.

mod decimal;
mod parse;

use crate::{Str, Value};
use decimal::Decimal;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{AddAssign, Neg, SubAssign};

pub use parse::QuantityError;

/// Powers of ten that amounts are counted in.
pub const NANO: i32 = -9;
pub const MICRO: i32 = -6;
pub const MILLI: i32 = -3;

/// By powers of 1024.
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// How an amount is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`.
    BinarySi,
    /// `12M`.
    #[default]
    DecimalSi,
}

/// An amount. Comparison is by value: `1Gi` equals `1073741824`.
#[derive(Debug, Clone, Default)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text that it was read from, where that is kept; else empty.
    text: Str,
}

/// Most amounts are an integer times a power of ten; only huge and odd ones take the slow form. The two
/// are kept apart as the reference does, for it shows in [`Quantity::as_i64`] and in overflows.
#[derive(Debug, Clone)]
enum Amount {
    Int { value: i64, scale: i32 },
    Decimal(Box<Decimal>),
}

impl Default for Amount {
    fn default() -> Amount {
        Amount::Int { value: 0, scale: 0 }
    }
}

impl Amount {
    fn decimal(&self) -> Decimal {
        match self {
            Amount::Int { value, scale } => Decimal::from_int(*value, *scale),
            Amount::Decimal(d) => (**d).clone(),
        }
    }
}

impl Quantity {
    pub fn new(value: i64, format: Format) -> Quantity {
        Quantity::scaled(value, 0, format)
    }

    pub fn milli(value: i64, format: Format) -> Quantity {
        Quantity::scaled(value, MILLI, format)
    }

    /// `value * 10^scale`.
    pub fn scaled(value: i64, scale: i32, format: Format) -> Quantity {
        Quantity { amount: Amount::Int { value, scale }, format, text: Str::default() }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn is_zero(&self) -> bool {
        self.signum() == 0
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match &self.amount {
            Amount::Int { value, .. } => value.signum() as i32,
            Amount::Decimal(d) => d.signum(),
        }
    }

    /// The amount as an integer if it was read as one and fits. Amounts that took the slow form (`1Pi`,
    /// twenty digits) have none, as in the reference.
    pub fn as_i64(&self) -> Option<i64> {
        match self.amount {
            Amount::Int { value, scale } if scale >= 0 => scale_up(value, scale).ok(),
            _ => None,
        }
    }

    /// Whole units, rounded up.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Thousandths, rounded up.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI)
    }

    /// Units of `10^scale`, rounded away from zero. What does not fit into 64 bits wraps or becomes 0, as
    /// in the reference; compare before where that matters.
    pub fn scaled_value(&self, scale: i32) -> i64 {
        match &self.amount {
            Amount::Int { value, scale: own } => {
                let difference = i64::from(scale) - i64::from(*own);
                if difference > 0 {
                    scale_down(*value, difference).0
                } else {
                    let steps = i32::try_from(-difference).unwrap_or(i32::MAX);
                    scale_up(*value, steps).unwrap_or_else(|wrapped| wrapped)
                }
            }
            Amount::Decimal(d) => d.ceil_wrapping(scale),
        }
    }

    /// Rounds away from zero to a multiple of `10^scale`. False if that changed the amount.
    pub fn round_up(&mut self, scale: i32) -> bool {
        let (amount, exact) = match &self.amount {
            Amount::Int { scale: own, .. } if *own >= scale => return true,
            Amount::Int { value, scale: own } => {
                let (value, exact) = scale_down(*value, i64::from(scale) - i64::from(*own));
                (Amount::Int { value, scale }, exact)
            }
            Amount::Decimal(d) => {
                let mut d = d.clone();
                let exact = d.round_away(scale);
                (Amount::Decimal(d), exact)
            }
        };
        self.amount = amount;
        self.text = Str::default();
        exact
    }

    /// Multiplies. False if the result needs more than 64 bits; it is exact all the same.
    pub fn multiply(&mut self, factor: i64) -> bool {
        self.text = Str::default();
        if let Amount::Int { value, scale } = self.amount {
            let product = if factor == 0 { Some((0, 0)) } else { value.checked_mul(factor).map(|v| (v, scale)) };
            if let Some((value, scale)) = product
                && (scale <= 0 || scale_up(value, scale).is_ok())
            {
                self.amount = Amount::Int { value, scale };
                return true;
            }
        }
        let mut d = self.amount.decimal();
        d.multiply(factor);
        let fits = d.unscaled_fits();
        self.amount = Amount::Decimal(Box::new(d));
        fits
    }

    /// The nearest double, or close to it.
    pub fn as_approximate_f64(&self) -> f64 {
        match &self.amount {
            Amount::Int { value, scale: 0 } => *value as f64,
            Amount::Int { value, scale } => *value as f64 * power_of_ten(*scale),
            Amount::Decimal(d) => d.approximate_f64(),
        }
    }

    /// What `Display` shows.
    pub fn into_text(self) -> Str {
        if self.text.is_empty() { self.canonical().into() } else { self.text }
    }

    /// The canonical form: no fraction, the largest suffix that keeps it exact, as few digits as possible.
    /// Suffixes end at `E` and `Ei`; the reference leaves larger ones out, and so does this.
    pub fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        if let (Amount::Int { value, scale: 0 }, Format::BinarySi) = (&self.amount, self.format)
            && value.unsigned_abs() >= 1024
        {
            // Sizes of memory, mostly.
            let power = value.trailing_zeros() as usize / 10;
            let mut text = (value >> (10 * power)).to_string();
            text.push_str(BINARY_SUFFIXES[power]);
            return text;
        }
        let mut decimal = self.amount.decimal();
        let mut format = self.format;
        if format == Format::BinarySi {
            let small = decimal.cmp_magnitude(&Decimal::from_int(1024, 0)) == Ordering::Less;
            if small || !decimal.is_integer() {
                format = Format::DecimalSi;
            }
        }
        if format == Format::BinarySi {
            let power = decimal.take_factors_of_1024();
            let suffix = BINARY_SUFFIXES.get(power).copied().unwrap_or("");
            return format!("{decimal}{suffix}");
        }
        let exponent = decimal.take_thousands();
        match (format, exponent) {
            (_, 0) => decimal.to_string(),
            (Format::DecimalExponent, _) => format!("{decimal}e{exponent}"),
            _ => format!("{decimal}{}", parse::decimal_suffix(exponent)),
        }
    }
}

fn power_of_ten(exponent: i32) -> f64 {
    // Parsing is correctly rounded; powi is not.
    format!("1e{exponent}").parse().expect("a float literal")
}

/// `value * 10^steps`, or what the reference makes of an overflow: usually 0, the wrapped product for the
/// steps that it has a shortcut for.
fn scale_up(value: i64, steps: i32) -> Result<i64, i64> {
    let exact = u32::try_from(steps).ok().and_then(|s| 10i64.checked_pow(s)).and_then(|p| value.checked_mul(p));
    match exact {
        Some(product) => Ok(product),
        None if value == 0 => Ok(0),
        None if matches!(steps, 1 | 2 | 3 | 6 | 9) => Err(value.wrapping_mul(10i64.pow(steps as u32))),
        None => Err(0),
    }
}

/// `value / 10^steps` rounded away from zero, and whether that is exact.
fn scale_down(value: i64, steps: i64) -> (i64, bool) {
    match u32::try_from(steps).ok().and_then(|s| 10i64.checked_pow(s)) {
        Some(power) => match (value / power, value % power) {
            (quotient, 0) => (quotient, true),
            (quotient, _) => (quotient + value.signum(), false),
        },
        None => (value.signum(), value == 0),
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() { f.write_str(&self.canonical()) } else { f.write_str(&self.text) }
    }
}

impl From<&Quantity> for Value {
    fn from(quantity: &Quantity) -> Value {
        Value::from(quantity.to_string())
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        match (&self.amount, &other.amount) {
            (Amount::Int { value: a, scale: x }, Amount::Int { value: b, scale: y }) if x == y => a.cmp(b),
            (a, b) => a.decimal().cmp(&b.decimal()),
        }
    }
}

impl AddAssign<&Quantity> for Quantity {
    fn add_assign(&mut self, other: &Quantity) {
        self.text = Str::default();
        if self.is_zero() {
            self.format = other.format;
        }
        if let (Amount::Int { value: a, scale: x }, Amount::Int { value: b, scale: y }) = (&self.amount, &other.amount)
            && let Some((value, scale)) = add_ints((*a, *x), (*b, *y))
        {
            self.amount = Amount::Int { value, scale };
            return;
        }
        let sum = self.amount.decimal().add(&other.amount.decimal());
        self.amount = Amount::Decimal(Box::new(sum));
    }
}

fn add_ints((a, x): (i64, i32), (b, y): (i64, i32)) -> Option<(i64, i32)> {
    if b == 0 {
        return Some((a, x));
    }
    if a == 0 {
        return Some((b, y));
    }
    let scale = x.min(y);
    let (a, b) = (scale_up(a, x.checked_sub(scale)?).ok()?, scale_up(b, y.checked_sub(scale)?).ok()?);
    Some((a.checked_add(b)?, scale))
}

impl SubAssign<&Quantity> for Quantity {
    fn sub_assign(&mut self, other: &Quantity) {
        *self += &-other.clone();
    }
}

impl Neg for Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        let amount = match self.amount {
            Amount::Int { value, scale } => match value.checked_neg() {
                Some(value) => Amount::Int { value, scale },
                None => Amount::Decimal(Box::new(-Decimal::from_int(value, scale))),
            },
            Amount::Decimal(d) => Amount::Decimal(Box::new(-*d)),
        };
        Quantity { amount, format: self.format, text: Str::default() }
    }
}

#[cfg(test)]
mod tests;
