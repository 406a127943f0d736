//! Counters and histograms by labels. Those of the library describe themselves anew for each set of labels, which takes longer than all that most
//! servers of a test ever count, and keep that beside the counts.

use super::pulled::family;
use kubelith_meta::quick_hash::{QuickHash, QuickHasher};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Metric, MetricFamily, MetricType};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

/// What is counted of one set of labels. Clones are the same.
pub trait Series: Clone + Send + Sync {
    const KIND: MetricType;
    /// What all of a family have in common.
    type Shape: Send + Sync;

    fn new(shape: &Self::Shape) -> Self;

    /// `labels` in the order of their names.
    fn metric(&self, labels: &[(&str, &str)]) -> Metric;
}

/// All series of one name. Clones are the same.
pub struct Labelled<S: Series>(Arc<Shared<S>>);

struct Shared<S: Series> {
    desc: Desc,
    shape: S::Shape,
    labels: Vec<String>,
    series: RwLock<ByHash<S>>,
}

/// By the hash of the labels' values, of which no family has many.
type ByHash<S> = HashMap<u64, Vec<Known<S>>, QuickHash>;

/// The labels' values, in the order of `labels`.
type Known<S> = (Box<[Box<str>]>, S);

impl<S: Series> Clone for Labelled<S> {
    fn clone(&self) -> Labelled<S> {
        Labelled(self.0.clone())
    }
}

impl<S: Series> Labelled<S> {
    pub fn new(name: &str, help: &str, shape: S::Shape, labels: &[&str]) -> prometheus::Result<Labelled<S>> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let desc = Desc::new(name.to_owned(), help.to_owned(), labels.clone(), HashMap::new())?;
        Ok(Labelled(Arc::new(Shared { desc, shape, labels, series: RwLock::default() })))
    }

    /// The series of these values, which begins to exist with this. There must be one for each label.
    pub fn with_label_values<V: AsRef<str>>(&self, values: &[V]) -> S {
        assert_eq!(values.len(), self.0.labels.len(), "each label of {} needs a value", self.0.desc.fq_name);
        let hash = hash(values);
        let find = |all: &ByHash<S>| Some(all.get(&hash)?.iter().find(|(known, _)| same(known, values))?.1.clone());
        if let Some(known) = find(&self.0.series.read().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let mut all = self.0.series.write().unwrap_or_else(PoisonError::into_inner);
        find(&all).unwrap_or_else(|| {
            let made = S::new(&self.0.shape);
            let values = values.iter().map(|value| value.as_ref().into()).collect();
            all.entry(hash).or_default().push((values, made.clone()));
            made
        })
    }

    /// Forgets the series of these values. What is still counted in it is not shown.
    pub fn remove_label_values<V: AsRef<str>>(&self, values: &[V]) {
        let mut all = self.0.series.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(&hash(values)) {
            known.retain(|(known, _)| !same(known, values));
        }
    }

    /// Forgets all of them.
    pub fn reset(&self) {
        self.0.series.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn hash<V: AsRef<str>>(values: &[V]) -> u64 {
    let mut hasher = QuickHasher::default();
    values.iter().for_each(|value| value.as_ref().hash(&mut hasher));
    hasher.finish()
}

fn same<V: AsRef<str>>(known: &[Box<str>], values: &[V]) -> bool {
    known.iter().zip(values).all(|(known, value)| **known == *value.as_ref())
}

impl<S: Series> Collector for Labelled<S> {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.0.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Shared { desc, labels, series, .. } = &*self.0;
        let series = series.read().unwrap_or_else(PoisonError::into_inner);
        let metric = |(values, series): &Known<S>| {
            let mut named: Vec<(&str, &str)> =
                labels.iter().map(String::as_str).zip(values.iter().map(|value| &**value)).collect();
            named.sort_unstable();
            series.metric(&named)
        };
        let metrics = series.values().flatten().map(metric).collect();
        vec![family((&desc.fq_name, &desc.help), S::KIND, metrics)]
    }
}
