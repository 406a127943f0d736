//! Guaranteed, Burstable or BestEffort.

use crate::common::{Fields, NULL, member};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Map, Value};

/// From what the containers, or the pod as a whole, request and are limited to.
pub fn qos_class(pod: &Value) -> &'static str {
    let spec = member(pod, "spec");
    let whole = spec.some("resources");
    let resources: Vec<&Value> = match whole {
        Some(whole) => vec![whole],
        None => {
            let all = spec.list("containers").iter().chain(spec.list("initContainers"));
            all.map(|c| c.get("resources").unwrap_or(&NULL)).collect()
        }
    };
    let mut requests = Compute::default();
    let mut limits = Compute::default();
    let mut guaranteed = true;
    for resources in resources {
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

/// Sums of positive amounts; `None` if there were none.
#[derive(Default, PartialEq)]
struct Compute {
    cpu: Option<Quantity>,
    memory: Option<Quantity>,
}

impl Compute {
    /// Answers how many of the two there were.
    fn add(&mut self, list: Option<&Map>) -> usize {
        let mut found = 0;
        for (name, value) in list.into_iter().flat_map(|m| m.iter()) {
            let sum = match name {
                "cpu" => &mut self.cpu,
                "memory" => &mut self.memory,
                _ => continue,
            };
            let Some(amount) = Quantity::from_value(value).ok().filter(|amount| amount.signum() > 0) else { continue };
            found += 1;
            match sum {
                Some(sum) => *sum += &amount,
                None => *sum = Some(amount),
            }
        }
        found
    }

    fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::value;

    #[test]
    fn classes() {
        let both = r#"{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1000m","memory":"1Gi"}}"#;
        let cases = [
            (r#"{"containers":[{"name":"a"}]}"#.to_owned(), "BestEffort"),
            (r#"{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}"#.to_owned(), "Burstable"),
            (format!(r#"{{"containers":[{{"resources":{both}}}]}}"#), "Guaranteed"),
            (format!(r#"{{"containers":[{{"resources":{both}}},{{"name":"b"}}]}}"#), "Burstable"),
            (format!(r#"{{"containers":[{{"resources":{both}}}],"initContainers":[{{}}]}}"#), "Burstable"),
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
            assert_eq!(qos_class(&value(&format!(r#"{{"spec":{spec}}}"#))), want, "{spec}");
        }
    }
}
