//! The operators of numbers, times, texts and lists.

use super::{MAX_ITEMS, MAX_TEXT};
use crate::value::{EvalError, Form, List, MAX_SECONDS, MIN_SECONDS, Res, Timestamp, Val, add_typed};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arith {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Arith {
    pub fn name(self) -> &'static str {
        match self {
            Arith::Add => "_+_",
            Arith::Subtract => "_-_",
            Arith::Multiply => "_*_",
            Arith::Divide => "_/_",
            Arith::Modulo => "_%_",
        }
    }

    /// Whether the type of the left operand has the operator at all.
    fn has(self, val: &Val<'_>) -> bool {
        match self {
            // What has an order can be added, but for booleans.
            Arith::Add => val.is_comparable() && !matches!(val, Val::Bool(_)) || val.as_list().is_some(),
            Arith::Subtract => {
                matches!(val, Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_) | Val::Timestamp(_))
            }
            Arith::Multiply | Arith::Divide => matches!(val, Val::Int(_) | Val::Uint(_) | Val::Double(_)),
            Arith::Modulo => matches!(val, Val::Int(_) | Val::Uint(_)),
        }
    }

    #[inline]
    pub fn apply<'a>(self, a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
        if let (Val::Int(a), Val::Int(b)) = (a, b) {
            return self.ints(*a, *b);
        }
        if !self.has(a) {
            return Err(no_operator(a, self.name()));
        }
        match self {
            Arith::Add => add(a, b),
            Arith::Subtract => subtract(a, b),
            _ => self.numbers(a, b),
        }
    }

    #[inline]
    fn ints<'a>(self, a: i64, b: i64) -> Res<'a> {
        let result = match self {
            Arith::Add => a.checked_add(b),
            Arith::Subtract => a.checked_sub(b),
            Arith::Multiply => a.checked_mul(b),
            Arith::Divide if b == 0 => return Err(EvalError::fixed("division by zero")),
            Arith::Divide => a.checked_div(b),
            Arith::Modulo if b == 0 => return Err(EvalError::fixed("modulus by zero")),
            Arith::Modulo => a.checked_rem(b),
        };
        result.map(Val::Int).ok_or_else(int_overflow)
    }

    fn numbers<'a>(self, a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
        match (a, b) {
            (Val::Uint(a), Val::Uint(b)) => {
                let result = match self {
                    Arith::Add => a.checked_add(*b),
                    Arith::Subtract => a.checked_sub(*b),
                    Arith::Multiply => a.checked_mul(*b),
                    Arith::Divide if *b == 0 => return Err(EvalError::fixed("division by zero")),
                    Arith::Divide => a.checked_div(*b),
                    Arith::Modulo if *b == 0 => return Err(EvalError::fixed("modulus by zero")),
                    Arith::Modulo => a.checked_rem(*b),
                };
                result.map(Val::Uint).ok_or_else(|| EvalError::fixed("unsigned integer overflow"))
            }
            (Val::Double(a), Val::Double(b)) => Ok(Val::Double(match self {
                Arith::Add => a + b,
                Arith::Subtract => a - b,
                Arith::Multiply => a * b,
                Arith::Divide => a / b,
                Arith::Modulo => return Err(EvalError::no_overload()),
            })),
            _ => Err(EvalError::no_overload()),
        }
    }
}

fn int_overflow() -> EvalError {
    EvalError::fixed("integer overflow")
}

/// An operator that the type of the left operand does not have. Some types answer for themselves.
#[cold]
pub fn no_operator(left: &Val<'_>, function: &str) -> EvalError {
    match left {
        Val::Str(_) | Val::Text(_) | Val::Duration(_) | Val::Timestamp(_) => EvalError::no_overload(),
        _ => EvalError::new(format!("no such overload: {function}")),
    }
}

pub fn add<'a>(a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Arith::Add.ints(*a, *b),
        (Val::Duration(a), Val::Duration(b)) => a.checked_add(*b).map(Val::Duration).ok_or_else(int_overflow),
        (Val::Duration(d), Val::Timestamp(t)) | (Val::Timestamp(t), Val::Duration(d)) => shift(*t, *d),
        (Val::Uint(_), _) | (Val::Double(_), _) => Arith::Add.numbers(a, b),
        _ => {
            if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
                if a.len() + b.len() > MAX_TEXT {
                    return Err(EvalError::size());
                }
                return Ok(Val::text([a, b].concat()));
            }
            if let (Some(a), Some(b)) = (a.as_bytes(), b.as_bytes()) {
                if a.len() + b.len() > MAX_TEXT {
                    return Err(EvalError::size());
                }
                return Ok(Val::Blob([a, b].concat().into()));
            }
            concat(a, b)
        }
    }
}

fn concat<'a>(a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
    let (Some(left), Some(right)) = (a.as_list(), b.as_list()) else { return Err(EvalError::no_overload()) };
    if left.len() + right.len() > MAX_ITEMS {
        return Err(EvalError::size());
    }
    if let Some(declared) = left.declared() {
        return add_typed(left, right, declared);
    }
    if left.is_empty() {
        return Ok(b.clone());
    }
    if right.is_empty() {
        return Ok(a.clone());
    }
    let list = List::new(left.iter().chain(right.iter()).collect::<Result<_, _>>()?)?;
    Ok(Val::List(Arc::new(List { form: Form::Concat, ..list })))
}

fn subtract<'a>(a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Duration(a), Val::Duration(b)) => a.checked_sub(*b).map(Val::Duration).ok_or_else(int_overflow),
        (Val::Timestamp(t), Val::Duration(d)) => shift(*t, d.checked_neg().ok_or_else(int_overflow)?),
        (Val::Timestamp(a), Val::Timestamp(b)) => {
            let seconds = a.seconds.checked_sub(b.seconds).and_then(|s| s.checked_mul(1_000_000_000));
            let nanos = i64::from(a.nanos) - i64::from(b.nanos);
            seconds.and_then(|s| s.checked_add(nanos)).map(Val::Duration).ok_or_else(int_overflow)
        }
        _ => Arith::Subtract.numbers(a, b),
    }
}

fn shift<'a>(t: Timestamp, by: i64) -> Res<'a> {
    let nanos = i64::from(t.nanos) + by.rem_euclid(1_000_000_000);
    let seconds = t.seconds + by.div_euclid(1_000_000_000) + nanos / 1_000_000_000;
    if !(MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
        return Err(EvalError::fixed("timestamp overflow"));
    }
    Ok(Val::Timestamp(Timestamp { seconds, nanos: (nanos % 1_000_000_000) as u32, offset: t.offset }))
}

pub fn negate<'a>(x: &Val<'a>) -> Res<'a> {
    match x {
        Val::Int(i) => i.checked_neg().map(Val::Int).ok_or_else(int_overflow),
        Val::Double(d) => Ok(Val::Double(-d)),
        Val::Duration(d) => d.checked_neg().map(Val::Duration).ok_or_else(int_overflow),
        Val::Bool(_) => Err(EvalError::no_overload()),
        other => Err(no_operator(other, "-_")),
    }
}
