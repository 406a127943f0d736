//! Guaranteed, Burstable or BestEffort.

use kubelith_meta::quantity::{Format, Quantity};
use kubelith_meta::{Map, Value};
use kubelith_rules::Features;
use kubelith_rules::common::{Fields, member, plain_milli};

/// From what the containers, or the pod as a whole, request and are limited to.
pub fn qos_class(features: &Features, pod: &Value) -> &'static str {
    let spec = member(pod, "spec");
    let whole = spec.some("resources").filter(|_| features.pod_level_resources);
    let containers = ["containers", "initContainers"].map(|key| if whole.is_none() { spec.list(key) } else { &[] });
    let each = containers.into_iter().flatten().map(|container| member(container, "resources"));
    let mut requests = Compute::default();
    let mut limits = Compute::default();
    let mut guaranteed = true;
    for resources in whole.into_iter().chain(each) {
        requests.add(resources.map("requests"));
        // Guaranteed means every container is limited in both.
        guaranteed &= limits.add(resources.map("limits")) == 2;
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Sums of positive amounts.
#[derive(Default, PartialEq)]
struct Compute {
    cpu: Sum,
    memory: Sum,
}

impl Compute {
    /// Answers how many of the two there were.
    fn add(&mut self, list: Option<&Map>) -> usize {
        let mut found = 0;
        for (name, value) in list.into_iter().flat_map(|m| m.iter()) {
            found += match name {
                "cpu" => self.cpu.add(value),
                "memory" => self.memory.add(value),
                _ => 0,
            };
        }
        found
    }

    fn is_empty(&self) -> bool {
        self.cpu.is_empty() && self.memory.is_empty()
    }
}

/// Most amounts are added up as numbers.
#[derive(Default)]
struct Sum {
    milli: i64,
    others: Option<Quantity>,
}

impl Sum {
    /// Answers whether the amount is a positive one.
    fn add(&mut self, value: &Value) -> usize {
        let plain = plain_milli(value);
        if let Some(sum) = plain.and_then(|amount| self.milli.checked_add(amount)) {
            self.milli = sum;
            return usize::from(plain != Some(0));
        }
        match Quantity::from_value(value) {
            Ok(amount) if amount.signum() > 0 => {
                *self.others.get_or_insert_default() += &amount;
                1
            }
            _ => 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.milli == 0 && self.others.is_none()
    }

    fn total(&self) -> Quantity {
        let mut total = Quantity::milli(self.milli, Format::DecimalSi);
        total += self.others.as_ref().unwrap_or(&Quantity::default());
        total
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Sum) -> bool {
        match (&self.others, &other.others) {
            (None, None) => self.milli == other.milli,
            _ => self.total() == other.total(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_rules::testing::value;

    #[test]
    fn classes() {
        let both = r#"{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1000m","memory":"1Gi"}}"#;
        let cases = [
            (r#"{"containers":[{"name":"a"}]}"#.to_owned(), "BestEffort"),
            (r#"{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}"#.to_owned(), "Burstable"),
            (format!(r#"{{"containers":[{{"resources":{both}}}]}}"#), "Guaranteed"),
            (format!(r#"{{"containers":[{{"resources":{both}}},{{"name":"b"}}]}}"#), "Burstable"),
            (format!(r#"{{"containers":[{{"resources":{both}}}],"initContainers":[{{}}]}}"#), "Burstable"),
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1.5Gi"},"limits":{"cpu":"1","memory":"1536Mi"}}},{"resources":{"requests":{"cpu":"1e0","memory":"0"},"limits":{"cpu":"1","memory":"1"}}}]}"#
                    .to_owned(),
                "Burstable",
            ),
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"2e0","memory":"1.5Gi"},"limits":{"cpu":"2000m","memory":"1536Mi"}}}]}"#
                    .to_owned(),
                "Guaranteed",
            ),
            // What is said for the whole pod counts alone.
            (format!(r#"{{"resources":{both},"containers":[{{"name":"b"}}]}}"#), "Guaranteed"),
            (format!(r#"{{"resources":{{}},"containers":[{{"resources":{both}}}]}}"#), "BestEffort"),
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1"},"limits":{"cpu":"2","memory":"1"}}}]}"#
                    .to_owned(),
                "Burstable",
            ),
        ];
        for (spec, want) in cases {
            assert_eq!(
                qos_class(&kubelith_rules::Env::default().features, &value(&format!(r#"{{"spec":{spec}}}"#))),
                want,
                "{spec}"
            );
        }
    }
}
