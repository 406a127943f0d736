//! Guaranteed, Burstable or BestEffort.

use crate::common::{Fields, NULL, member};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Map, Value};
use std::collections::BTreeMap;

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
    let mut requests = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut guaranteed = true;
    for resources in resources {
        add_compute(&mut requests, resources.map("requests"));
        let limited = add_compute(&mut limits, resources.map("limits"));
        // Guaranteed means every container is limited in both.
        guaranteed &= limited == 2;
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let equal = requests.iter().all(|(name, request)| limits.get(name) == Some(request));
    if guaranteed && equal && requests.len() == limits.len() { "Guaranteed" } else { "Burstable" }
}

/// Adds positive amounts of cpu and memory; answers how many of the two there were.
fn add_compute<'a>(sums: &mut BTreeMap<&'a str, Quantity>, list: Option<&'a Map>) -> usize {
    let mut found = 0;
    for (name, value) in list.into_iter().flat_map(|m| m.iter()).filter(|(name, _)| matches!(*name, "cpu" | "memory")) {
        let Ok(amount) = Quantity::from_value(value) else { continue };
        if amount.signum() > 0 {
            found += 1;
            match sums.get_mut(name) {
                Some(sum) => *sum += &amount,
                None => drop(sums.insert(name, amount)),
            }
        }
    }
    found
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
