//! What is not limited follows from what is.

use kubelith_meta::{Map, Value};
use kubelith_rules::defaults::amounts::{complete, round_up};
use kubelith_rules::defaults::{Defaults, text};

pub const RULES: Defaults = &[("io.k8s.api.core.v1.LimitRangeItem", limit)];

/// What a container gets if it says nothing follows from what it may at most and at least have.
fn limit(item: &mut Map) {
    if text(item, "type") == "Container" {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            if let Some(Value::Object(amounts)) = item.get(from).cloned() {
                complete(item, to, &amounts);
            }
        }
    }
    round_up(item, &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]);
}
