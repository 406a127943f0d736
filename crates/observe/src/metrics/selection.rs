//! What operators leave out of `/metrics`: whole metrics (`--disabled-metrics`), and label values beyond a list
//! (`--allow-metric-labels`), which are counted together as `unexpected`.

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use std::collections::{BTreeMap, BTreeSet};

const UNEXPECTED: &str = "unexpected";
/// How often a label had a value beyond its list.
pub(super) const CATEGORIZATIONS: &str = "cardinality_enforcement_unexpected_categorizations_total";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub disabled: BTreeSet<String>,
    /// The values that a label of a metric may have.
    pub allowed: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Selection {
    /// `metric,label=value,value`, as the flag gives it: the part before `=` and the one behind it.
    pub fn allow(&mut self, metric_and_label: &str, values: &str) -> Result<(), String> {
        let (metric, label) = metric_and_label
            .split_once(',')
            .filter(|(metric, label)| !metric.is_empty() && !label.is_empty())
            .ok_or_else(|| format!("invalid metric and label {metric_and_label:?}, want metric,label"))?;
        let values = values.split(',').filter(|v| !v.is_empty()).map(str::to_owned).collect();
        self.allowed.insert((metric.into(), label.into()), values);
        Ok(())
    }

    pub fn is_everything(&self) -> bool {
        self.disabled.is_empty() && self.allowed.is_empty()
    }

    /// Applies it to what was gathered.
    pub fn select(&self, mut families: Vec<MetricFamily>) -> Vec<MetricFamily> {
        families.retain(|f| !self.disabled.contains(f.name()));
        let mut unexpected = 0;
        for ((metric, label), values) in &self.allowed {
            for family in families.iter_mut().filter(|f| f.name() == metric) {
                unexpected += relabel(family, label, values);
            }
        }
        let counts = families.iter_mut().filter(|f| f.name() == CATEGORIZATIONS);
        for count in counts.flat_map(MetricFamily::mut_metric) {
            let mut sum = prometheus::proto::Counter::default();
            sum.set_value(unexpected as f64);
            count.set_counter(sum);
        }
        families
    }
}

/// How often a value was none of `values`.
fn relabel(family: &mut MetricFamily, label: &str, values: &BTreeSet<String>) -> u64 {
    let kind = family.get_field_type();
    let mut unexpected = 0;
    let mut merged: Vec<Metric> = Vec::new();
    for mut metric in family.take_metric() {
        let mut labels: Vec<LabelPair> = metric.take_label();
        for pair in labels.iter_mut().filter(|l| l.name() == label && !values.contains(l.value())) {
            pair.set_value(UNEXPECTED.to_owned());
            unexpected += times(kind, &metric);
        }
        metric.set_label(labels);
        match merged.iter_mut().find(|m| m.get_label() == metric.get_label()) {
            Some(known) => add(kind, known, &metric),
            None => merged.push(metric),
        }
    }
    family.set_metric(merged);
    unexpected
}

/// How often something was counted; of what only has a value now, that is not known.
fn times(kind: MetricType, metric: &Metric) -> u64 {
    match kind {
        MetricType::COUNTER => metric.get_counter().get_value() as u64,
        MetricType::HISTOGRAM => metric.get_histogram().get_sample_count(),
        _ => 1,
    }
}

fn add(kind: MetricType, into: &mut Metric, more: &Metric) {
    match kind {
        MetricType::COUNTER => {
            let mut sum = prometheus::proto::Counter::default();
            sum.set_value(into.get_counter().get_value() + more.get_counter().get_value());
            into.set_counter(sum);
        }
        MetricType::GAUGE => {
            let mut sum = prometheus::proto::Gauge::default();
            sum.set_value(into.get_gauge().get_value() + more.get_gauge().get_value());
            into.set_gauge(sum);
        }
        MetricType::HISTOGRAM => {
            let (a, b) = (into.get_histogram().clone(), more.get_histogram());
            let mut sum = a.clone();
            sum.set_sample_count(a.get_sample_count() + b.get_sample_count());
            sum.set_sample_sum(a.get_sample_sum() + b.get_sample_sum());
            let buckets = a.get_bucket().iter().zip(b.get_bucket()).map(|(a, b)| {
                let mut bucket = a.clone();
                bucket.set_cumulative_count(a.cumulative_count() + b.cumulative_count());
                bucket
            });
            sum.set_bucket(buckets.collect());
            into.set_histogram(sum);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{Encoder, TextEncoder};

    #[test]
    fn unexpected_values_are_counted_together() {
        let registry = crate::metrics::Registry::new();
        let counter = super::super::counters(&registry, "a_total", "A.", &["code"]);
        for (code, times) in [("200", 1), ("404", 2), ("500", 4)] {
            counter.with_label_values(&[code]).inc_by(times);
        }
        super::super::counters(&registry, "b_total", "B.", &["x"]).with_label_values(&["y"]).inc();
        let histogram = super::super::histograms(&registry, "c", "C.", &[1.0], &["code"]);
        for code in ["1", "2"] {
            histogram.with_label_values(&[code]).observe(0.5);
        }
        let mut selection = Selection { disabled: ["b_total".to_owned()].into(), ..Selection::default() };
        selection.allow("a_total,code", "200,201").unwrap();
        selection.allow("c,code", "").unwrap();
        assert!(selection.allow("a_total", "x").is_err());
        super::super::counters(&registry, CATEGORIZATIONS, "N.", &[]).with_label_values(&[] as &[&str]);
        let mut text = Vec::new();
        TextEncoder::new().encode(&selection.select(registry.gather()), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in
            ["a_total{code=\"200\"} 1\n", "a_total{code=\"unexpected\"} 6\n", "c_count{code=\"unexpected\"} 2\n"]
        {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("b_total"));
        assert!(text.contains(&format!("{CATEGORIZATIONS} 8\n")), "{text}");
    }
}
