//! Numbers of one type as another, exactly or not at all.

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

pub fn double_to_int(d: f64) -> Option<i64> {
    // The limits themselves are left out, as in the reference.
    (d > -TWO_TO_63 && d < TWO_TO_63).then_some(d as i64)
}

pub fn double_to_uint(d: f64) -> Option<u64> {
    (0.0..TWO_TO_64).contains(&d).then_some(d as u64)
}

pub fn double_to_int_exact(d: f64) -> Option<i64> {
    double_to_int(d).filter(|i| *i as f64 == d)
}

pub fn double_to_uint_exact(d: f64) -> Option<u64> {
    double_to_uint(d).filter(|u| *u as f64 == d)
}
