//! Which of two values comes first.

use super::{EvalError, Val};
use std::cmp::Ordering;

impl Val<'_> {
    /// Whether values of its type have an order.
    pub fn is_comparable(&self) -> bool {
        matches!(
            self,
            Val::Bool(_)
                | Val::Int(_)
                | Val::Uint(_)
                | Val::Double(_)
                | Val::Str(_)
                | Val::Text(_)
                | Val::Bytes(_)
                | Val::Blob(_)
                | Val::Duration(_)
                | Val::Timestamp(_)
        )
    }

    #[inline]
    pub fn compare(&self, other: &Val<'_>) -> Result<Ordering, EvalError> {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Ok(a.cmp(b)),
            (Val::Double(a), _) if a.is_nan() => Err(nan()),
            (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Double(b)) if b.is_nan() => Err(nan()),
            (Val::Uint(a), Val::Uint(b)) => Ok(a.cmp(b)),
            (Val::Double(a), Val::Double(b)) => Ok(doubles(*a, *b)),
            (Val::Int(a), Val::Uint(b)) => Ok(int_uint(*a, *b)),
            (Val::Uint(a), Val::Int(b)) => Ok(int_uint(*b, *a).reverse()),
            (Val::Double(a), Val::Int(b)) => Ok(double_int(*a, *b)),
            (Val::Int(a), Val::Double(b)) => Ok(double_int(*b, *a).reverse()),
            (Val::Double(a), Val::Uint(b)) => Ok(double_uint(*a, *b)),
            (Val::Uint(a), Val::Double(b)) => Ok(double_uint(*b, *a).reverse()),
            (Val::Bool(a), Val::Bool(b)) => Ok(a.cmp(b)),
            (Val::Duration(a), Val::Duration(b)) => Ok(a.cmp(b)),
            (Val::Timestamp(a), Val::Timestamp(b)) => Ok(a.key().cmp(&b.key())),
            _ => match (self.as_str(), other.as_str()) {
                (Some(a), Some(b)) => Ok(a.cmp(b)),
                _ => match (self.as_bytes(), other.as_bytes()) {
                    (Some(a), Some(b)) => Ok(a.cmp(b)),
                    _ => Err(EvalError::no_overload()),
                },
            },
        }
    }

    /// Numbers of any type that are the same; `None` if these are not two numbers.
    #[inline]
    pub(super) fn same_number(&self, other: &Val<'_>) -> Option<bool> {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Some(a == b),
            (Val::Uint(a), Val::Uint(b)) => Some(a == b),
            (Val::Double(a), Val::Double(b)) => Some(a == b),
            (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
                Some(self.compare(other).is_ok_and(Ordering::is_eq))
            }
            _ => None,
        }
    }
}

fn nan() -> EvalError {
    EvalError::fixed("NaN values cannot be ordered")
}

fn doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn int_uint(a: i64, b: u64) -> Ordering {
    u64::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b))
}

fn double_int(a: f64, b: i64) -> Ordering {
    if a < i64::MIN as f64 {
        return Ordering::Less;
    }
    if a > i64::MAX as f64 {
        return Ordering::Greater;
    }
    doubles(a, b as f64)
}

fn double_uint(a: f64, b: u64) -> Ordering {
    if a < 0.0 {
        return Ordering::Less;
    }
    if a > u64::MAX as f64 {
        return Ordering::Greater;
    }
    doubles(a, b as f64)
}
