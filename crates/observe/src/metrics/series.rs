//! Series that are found without looking their labels up one by one: that costs more than counting does.

use super::{Counter, Counters, Histogram, Histograms};
use std::ops::Deref;
use std::sync::{OnceLock, RwLock};

/// The series of a metric with one label, whose values are few and known.
pub struct Fixed<M, const N: usize> {
    values: [&'static str; N],
    made: [OnceLock<M>; N],
    make: Box<dyn Fn(&str) -> M + Send + Sync>,
}

impl<const N: usize> Fixed<Counter, N> {
    pub fn counters(vec: Counters, values: [&'static str; N]) -> Self {
        Fixed::new(values, move |value| vec.with_label_values(&[value]))
    }
}

impl<const N: usize> Fixed<Histogram, N> {
    pub fn histograms(vec: Histograms, values: [&'static str; N]) -> Self {
        Fixed::new(values, move |value| vec.with_label_values(&[value]))
    }
}

impl<M, const N: usize> Fixed<M, N> {
    fn new(values: [&'static str; N], make: impl Fn(&str) -> M + Send + Sync + 'static) -> Self {
        Fixed { values, made: std::array::from_fn(|_| OnceLock::new()), make: Box::new(make) }
    }

    /// The series of a value, which begins to exist with this. The last one stands for all that are not known.
    pub fn of(&self, value: &str) -> &M {
        let i = self.values.iter().position(|v| *v == value).unwrap_or(N - 1);
        self.made[i].get_or_init(|| (self.make)(self.values[i]))
    }
}

/// A histogram of which only the labels are known, until something is observed.
#[derive(Default)]
pub struct Later(OnceLock<Histogram>);

impl Later {
    pub fn observe(&self, vec: &Histograms, labels: &[&str], value: f64) {
        self.0.get_or_init(|| vec.with_label_values(labels)).observe(value);
    }
}

/// A series that begins to exist when it is first used.
pub struct OnUse<M> {
    made: OnceLock<M>,
    make: Box<dyn Fn() -> M + Send + Sync>,
}

impl<M> OnUse<M> {
    pub fn new(make: impl Fn() -> M + Send + Sync + 'static) -> OnUse<M> {
        OnUse { made: OnceLock::new(), make: Box::new(make) }
    }
}

impl<M> Deref for OnUse<M> {
    type Target = M;

    fn deref(&self) -> &M {
        self.made.get_or_init(&self.make)
    }
}

/// Counters by response code.
#[derive(Default)]
pub struct ByCode(RwLock<Vec<(u16, Counter)>>);

impl ByCode {
    /// Counts one; `labels` are those before the code.
    pub fn inc(&self, code: u16, vec: &Counters, labels: &[&str]) {
        let known = self.0.read().unwrap_or_else(|e| e.into_inner());
        if let Some((_, counter)) = known.iter().find(|(c, _)| *c == code) {
            return counter.inc();
        }
        drop(known);
        let name = code.to_string();
        let counter = vec.with_label_values(&[labels, &[name.as_str()]].concat());
        counter.inc();
        // Two may do so at once; it is the same counter.
        self.0.write().unwrap_or_else(|e| e.into_inner()).push((code, counter));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Registry;
    use crate::metrics::{counters, histograms};

    #[test]
    fn series_exist_once_they_are_used() {
        let registry = Registry::new();
        let vec = counters(&registry, "a", "a", &["result"]);
        let fixed = Fixed::counters(vec.clone(), ["yes", "no", "other"]);
        for value in ["yes", "yes", "other", "never heard of"] {
            fixed.of(value).inc();
        }
        let counts = ["yes", "other"].map(|v| vec.with_label_values(&[v]).get());
        assert_eq!(counts, [2, 2]);
        assert_eq!(registry.gather()[0].get_metric().len(), 2);

        let codes = ByCode::default();
        let vec = counters(&registry, "b", "b", &["verb", "code"]);
        for code in [200, 404, 200] {
            codes.inc(code, &vec, &["GET"]);
        }
        assert_eq!(["200", "404"].map(|c| vec.with_label_values(&["GET", c]).get()), [2, 1]);

        let vec = histograms(&registry, "c", "c", &[1.0], &["verb"]);
        let later = Later::default();
        for value in [1.0, 2.0] {
            later.observe(&vec, &["GET"], value);
        }
        assert_eq!(vec.with_label_values(&["GET"]).get_sample_count(), 2);
    }
}
